"""Make text safe for a terminal, measure it and shorten it."""

from __future__ import annotations

import os
import re
import shlex
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from swarm.api.words import count as count  # noqa: PLC0414  # offered here, with the other words
from swarm.api.words import iso as iso  # noqa: PLC0414  # likewise

ELLIPSIS = "…"
ID_LENGTH = 10
_COMMAND_LAST = r"(?:^|: )((?:swarm|git|tmux|chmod|kill|cd) [^`]*)$"
_LEAD = r" *(?:[-*] +|\d+\. +)?"
#: What begins a line of Markdown that is no running text.
_ALONE = r" *(?:#|\||>|```)"
_BYTE = 0xDC00  # how Python writes an undecodable byte in text
_LATEST = 253_402_300_799_999  # the end of the year 9999
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def plain(text: object) -> str:
    """Return *text* on one line with every control character shown, not obeyed.

    Names, paths, commit subjects and configuration come from elsewhere and may hold anything.
    """
    whole = str(text)
    if whole.isprintable():
        return whole
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else _escaped(c) for c in whole)


def _escaped(c: str) -> str:
    byte = ord(c) - _BYTE
    if 0x80 <= byte <= 0xFF:  # the bytes beyond ASCII
        return f"\\x{byte:02x}"
    return c.encode("unicode_escape").decode("ascii")


def lines_of(text: str) -> list[str]:
    """Return the lines of a longer text, each safe on a terminal."""
    return [plain(line) for line in text.expandtabs(4).replace("\r\n", "\n").rstrip("\n").split("\n")]


def lead_of(line: str) -> str:
    """Return the beginning of a line: its indentation, and the mark of a list."""
    found = re.match(_LEAD, line)
    return found[0] if found else ""


def reflowed(lines: Sequence[str]) -> list[str]:
    """Join the lines of each paragraph of a text in Markdown; headings, tables and code stay as they are."""
    found: list[str] = []
    fenced = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        if found and not fenced and not fence and _goes_on(found[-1], line):
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
        fenced ^= fence
    return found


def _goes_on(before: str, line: str) -> bool:
    """Whether a line belongs to the paragraph of the one before it."""
    indent = len(line) - len(line.lstrip())
    is_text = bool(before.strip() and line.strip() and not re.match(_ALONE, before) and not re.match(_ALONE, line))
    return is_text and len(lead_of(line)) == indent == len(lead_of(before))


def width(text: str) -> int:
    """Return how many columns *text* takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_columns(c) for c in text)


def _columns(c: str) -> int:
    if unicodedata.category(c) in ("Mn", "Me"):  # written over the letter before
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def shorten(text: str, room: int, keep: str = "start") -> str:
    """Cut *text* to *room* columns, with an ellipsis where something is missing."""
    if width(text) <= room:
        return text
    if room < 1:
        return ""
    if keep == "end":
        return shorten(text[::-1], room)[::-1]
    taken, used = [], 0
    for c in text:
        used += _columns(c)
        if used > room - 1:
            break
        taken.append(c)
    return "".join(taken) + ELLIPSIS


def wrapped(text: str, room: int, *, command_last: bool = False) -> list[str]:
    """Break *text* at its spaces into lines of at most *room* columns; a longer word gets its own line.

    What stands in backquotes is one word: one wants to copy it.

    Args:
        command_last: a command that ends the text is one word, too.
    """
    lines = [""]
    for word in _words(text, command_last=command_last):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and width(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _words(text: str, *, command_last: bool) -> list[str]:
    command = re.search(_COMMAND_LAST, text) if command_last else None
    if command:
        before = text[: command.start(1)].rstrip(" ")
        return [*(_words(before, command_last=False) if before else []), command[1]]
    if text.count("`") % 2:
        return text.split(" ")
    found: list[str] = []
    inside = False
    for word in text.split(" "):
        if inside:
            found[-1] += f" {word}"
        else:
            found.append(word)
        inside ^= word.count("`") % 2 == 1
    return found


def short_id(commit: str) -> str:
    """Return the first characters of a commit id."""
    return commit[:ID_LENGTH]


def place(path: str | Path, *, quoted: bool = False) -> str:
    """Return a path as the user would type it: below the current directory, below home, or whole."""
    whole = os.fspath(path)
    here, home = _current(), os.environ.get("HOME", "")
    quote = shlex.quote if quoted else str
    if here and whole == here:
        return "."
    if here and whole.startswith(here.rstrip("/") + "/"):
        rest = whole[len(here.rstrip("/")) + 1 :]
        return plain(quote(f"./{rest}" if rest.startswith("-") else rest))
    if len(home) > 1 and whole.startswith(home.rstrip("/") + "/"):
        return "~/" + plain(quote(whole[len(home.rstrip("/")) + 1 :]))
    return plain(quote(whole))


def _current() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def local_time_of(text: str) -> str:
    """Return a time as records spell it, in the user's zone."""
    from calendar import timegm

    try:
        return local_time(timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) * 1000)
    except ValueError:
        return text


def local_time(milliseconds: int) -> str:
    """Return a time in the user's zone."""
    if not 0 < milliseconds <= _LATEST:
        return "unknown"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds // 1000))


def age(milliseconds: int, now: float | None = None) -> str:
    """Return how long ago something was, in one unit."""
    if milliseconds <= 0:
        return "?"
    seconds = max(0, int((time.time() if now is None else now) - milliseconds / 1000))
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
