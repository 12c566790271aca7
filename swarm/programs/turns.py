"""One turn of a program without a terminal: what it is told, what it said at the end, and what came of that.

The evidence counts in this order: why its supervisor ended it, the last result that the program wrote, how it ended,
and only then words on its standard error.  An exit status alone does not say success.
"""

from __future__ import annotations

import contextlib
import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit import files
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: In the folder of a run: the files that take the place of a terminal.
OUT, ERR = "out", "err"
#: So much of what a program wrote is read: its first lines, and its last ones.
_HEAD, _TAIL = 1 << 18, 16 << 20
_LONGEST_TEXT, _LONGEST_MESSAGE = 1 << 18, 300


class Turn(NamedTuple):
    """What a program is told.

    Attributes:
        text: the prompt.
        resume: it takes up the conversation; else it begins one.
        again: the conversation has the prompt already; the text only asks to go on.
        id: of the text, where it is told it on standard input, and more while it works; empty: it reads the text alone.
    """

    text: str
    resume: bool = False
    again: bool = False
    id: str = ""


class Kind(StrEnum):
    """What came of a turn."""

    DONE = "done"
    RETRYABLE = "retryable"
    RATE_LIMITED = "rate_limited"
    FATAL = "fatal"
    STOPPED = "stopped"  # by swarm, which knows why
    TIMEOUT = "timeout"
    BUDGET = "budget"
    NOT_STARTED = "not_started"
    NO_BOX = "no_box"  # its box could not be made


class Said(NamedTuple):
    """What a program said of its turn by its own words.

    Attributes:
        kind: None: it said nothing of that.
        text: its answer, or what there is of it.
        message: what went wrong.
        input, output: tokens.
        sum: the tokens are those of the whole conversation.
        conversation: its id, where the program chooses it.
        wait: seconds until the program may be asked again; 0: it does not say.
    """

    kind: Kind | None = None
    text: str = ""
    message: str = ""
    input: int = 0
    output: int = 0
    sum: bool = False
    conversation: str = ""
    wait: float = 0.0


class Ended(NamedTuple):
    """How a program ended, as its supervisor wrote it down.

    Attributes:
        began: false: its box could not be made.
    """

    cause: str
    code: int | None = None
    signal: int | None = None
    began: bool = True


#: EXEC-06 and what a shell says of a command that it cannot run.
_BAD_ARGUMENTS, _TIMED_OUT, _NOT_RUN = 2, 124, (126, 127)
_CAUSES = {"stopped": Kind.STOPPED, "hangup": Kind.STOPPED, "budget": Kind.BUDGET, "timeout": Kind.TIMEOUT}
#: Words of an error, in any case; the first that fits counts.
_FOR_GOOD = (
    r"context (window|length)|(prompt|input|request) is too (long|large)|invalid (x-)?api.?key|unauthorized"
    r"|\b(status|code)\"?: ?(400|401|403|404|413|422)\b"
)
_PATTERNS = (
    (re.compile(r"rate.?limit|too many requests|\b429\b", re.IGNORECASE), Kind.RATE_LIMITED),
    (re.compile(_FOR_GOOD, re.IGNORECASE), Kind.FATAL),
    (re.compile(r"network error|time[d]?.?out|connection (refused|reset)|overloaded", re.IGNORECASE), Kind.RETRYABLE),
)
_TOO_MANY, _TRY_AGAIN = 429, frozenset({408, 409, 425, 529})


def judge(ended: Ended, said: Said, err: str, *, speaks: bool) -> tuple[Kind, str]:
    """Return what came of a turn, and in a line why.

    Args:
        err: the end of its standard error.
        speaks: the program writes a result; without one its turn did not end well.
    """
    if not ended.began:
        return Kind.NO_BOX, _line(f"sandbox setup failed: {_last_line(err) or f'exit status {ended.code}'}")
    if ended.cause in _CAUSES:
        return _CAUSES[ended.cause], ""
    if said.kind is not None:
        return said.kind, _line(said.message)
    if ended.code == 0 and not speaks:
        return Kind.DONE, ""
    how = f"signal {ended.signal}" if ended.code is None else f"exit status {ended.code}"
    why = said.message or _last_line(err) or (f"it ended without a result ({how})" if ended.code == 0 else how)
    return _by_end(ended, err, speaks=speaks), _line(why)


def _by_end(ended: Ended, err: str, *, speaks: bool) -> Kind:
    """Return what an end without a result means: by its status, else by words on standard error."""
    if ended.code in _NOT_RUN:
        return Kind.NOT_STARTED
    if ended.code == _BAD_ARGUMENTS:
        return Kind.FATAL
    found = by_words(err)
    if found is not None:
        return found
    return Kind.RETRYABLE if ended.code in {None, _TIMED_OUT} or speaks else Kind.FATAL


def by_words(text: str) -> Kind | None:
    """Return what the words of an error mean; None: nothing that is known."""
    return next((kind for pattern, kind in _PATTERNS if pattern.search(text)), None)


def by_status(status: int | None) -> Kind:
    """Return what an answer of a model's API with this status means for a try again; None: there was no answer."""
    if status is None or status >= 500 or status in _TRY_AGAIN:
        return Kind.RETRYABLE
    return Kind.RATE_LIMITED if status == _TOO_MANY else Kind.FATAL


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Give the JSON objects that a program wrote, a line each: the first ones and the last ones of a long file.

    What is no object is passed over: a torn line, words in between.
    """
    for line in _lines(path):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def all_lines(path: Path, *words: bytes) -> Iterator[dict[str, Any]]:
    """Give all JSON objects of a program's own record in which one of these words is, however long the record is."""
    with contextlib.suppress(OSError, SwarmError), files.open_regular(path) as file:
        for line in file:
            if any(word in line for word in words):
                with contextlib.suppress(ValueError, RecursionError):
                    found = json.loads(line)
                    yield from (found,) if isinstance(found, dict) else ()


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with files.open_regular(path) as file:
            head = file.read(_HEAD + _TAIL)
            rest = file.seek(0, 2)
            if rest <= len(head):
                yield from head.split(b"\n")
                return
            yield from head[:_HEAD].split(b"\n")[:-1]
    except (OSError, SwarmError):
        return
    yield from files.read_tail(path, _TAIL).split(b"\n")


def tail_text(path: Path) -> str:
    """Return the end of a file as text."""
    try:
        with files.open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _LONGEST_TEXT))
            return file.read(_LONGEST_TEXT).decode("utf-8", "replace")
    except (OSError, SwarmError):
        return ""


def short(text: str) -> str:
    """Return a text that fits into a record."""
    return text[:_LONGEST_TEXT]


def number(value: Any) -> int:
    """Return a count of a foreign record."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _line(text: str) -> str:
    plain = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_MESSAGE]).split())
    return plain if len(plain) <= _LONGEST_MESSAGE else f"{plain[: _LONGEST_MESSAGE - 3]}..."
