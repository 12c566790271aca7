"""Whether text may be typed into a pane now. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.terminal.values import Screen

#: Line and paragraph separators, and what turns the direction of writing around.
_UNSEEN = frozenset("\u2028\u2029\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_SENDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:-]{0,80}")
_MARK = r"$#%>\u276f\u00bb\u203a"
#: How a prompt ends. After such a mark a blank and a word are not of the prompt, but typed.
_PROMPT = re.compile(rf"(?:[^{_MARK}]|[{_MARK}](?! \S))*[{_MARK}\u279c\u03bb:~)\]\u2717\u2714] ?")
#: A shell's prompt for the rest of an input, such as a quoted text.
_CONTINUED = re.compile(r"[a-z ]*> ?")
#: A question that waits for a word looks like a prompt otherwise.
_QUESTION = re.compile(r"\?\W*$|[\[(]\s*(?:y|n|yes|no)\s*[/|]", re.IGNORECASE)
#: A prompt may show something at the right edge, far from the cursor.
_FAR = "    "
#: What a program may put behind its mark.
_HARD_BLANK = "\xa0"
_BOX = "│┃|"
_MOST_SENDERS = 3
#: What chooses the style of what follows; kept by a split.
_STYLE = re.compile(r"(\x1b\[[0-9;:]*m)")
_TAIL = 12


def clean(text: str, keep: str = "\n\t") -> str:
    """Remove control characters: a paste could end itself, and the terminal would type the rest.

    Args:
        keep: control characters that stay.
    """
    return "".join(c for c in text if c in keep or (unicodedata.category(c) not in ("Cc", "Cs") and c not in _UNSEEN))


def nudge_line(count: int, senders: Iterable[str], *, shell: bool, more: bool = False, kept: int = 0) -> str:
    """Return the line that tells an agent of its messages: swarm's own words, nothing out of a message.

    Args:
        shell: it is typed at a shell's prompt, where it must do nothing.
        more: there are more than *count*.
        kept: so many more it took and has not acknowledged; until then they are what it is given.
    """
    known = list(dict.fromkeys(name for name in senders if _SENDER.fullmatch(name)))
    from_whom = ", ".join(known[:_MOST_SENDERS]) + (" and others" if len(known) > _MOST_SENDERS else "")
    number = f"{count}{'+' if more else ''} new message{'s' if count > 1 or more else ''}"
    line = f"[swarm] {number}" + (f" from {from_whom}" if from_whom else "")
    first = ""
    if kept:
        line += f", behind {kept} that you took and did not acknowledge"
        first = "swarm inbox ack, then " if shell else "`swarm inbox ack`, then "
    # The blank keeps it out of the history of most shells; ":" does nothing in all of them, and takes any words.
    return f" : '{line}; to read: {first}swarm inbox take'" if shell else f"{line}: run {first}`swarm inbox take`"


def is_prompt(screen: Screen, prompt: str = "", *, shell: bool = False) -> bool:
    """Whether the cursor stands where nothing has been typed yet, as far as a look can tell; in doubt it does not.

    Args:
        prompt: what the program says that its prompt is, empty when it does not.
    """
    before, after = (part.replace(_HARD_BLANK, " ") for part in (screen.before, screen.after))
    if after.strip(_BOX + " ") and not after.startswith(_FAR):
        return False
    if prompt:
        return before.rstrip() == prompt.rstrip()
    if shell and (_CONTINUED.fullmatch(before) or _QUESTION.search(before) or screen.takes_lines):
        return False
    before = before.lstrip(_BOX + " ")
    return _PROMPT.fullmatch(before) is not None


def shows(screen: Screen, line: str) -> bool:
    """Whether a line that was pasted is to be seen."""
    return squeezed(line)[-_TAIL:] in screen.text


def holds(screen: Screen, line: str) -> bool:
    """Whether the text at the cursor is this very line, maybe wrapped."""
    typed, whole = squeezed(screen.before), squeezed(line)
    return bool(line) and len(typed) >= _TAIL and (typed.endswith(whole) or whole.endswith(typed))


def squeezed(text: str) -> str:
    """Return a text without its blanks: a line that is wrapped at one loses it."""
    return "".join(text.split())


def is_faint(styled: str, column: int) -> bool:
    """Whether all that is to be seen of a row from a column on is written faintly; it has to be something.

    Args:
        styled: the row with the sequences that choose its styles.
    """
    faint, left, seen = False, column, False
    for piece in _STYLE.split(styled):
        if piece.startswith("\x1b"):
            for code in piece[2:-1].replace(":", ";").split(";"):
                faint = (faint or code == "2") and code not in ("", "0", "22")
            continue
        wide = width(piece)
        rest = cut(piece, left)[1] if left else piece
        left = max(0, left - wide)
        if rest.strip():
            if not faint:
                return False
            seen = True
    return seen


def width(text: str) -> int:
    """Return how many columns a text takes."""
    return sum((2 if unicodedata.east_asian_width(c) in "WF" else 1) for c in text if not unicodedata.combining(c))


def cut(row: str, column: int) -> tuple[str, str]:
    """Split a row of the screen at a column; some characters take two."""
    width = 0
    for at, character in enumerate(row):
        if width >= column and not unicodedata.combining(character):
            return row[:at], row[at:]
        if not unicodedata.combining(character):
            width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return row + " " * (column - width), ""
