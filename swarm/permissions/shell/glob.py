"""The files that a shell puts in the place of a pattern; it errs on the side of too many names.

``[^a]`` is any character, since shells differ about it.  What only a locale could tell (``[[:lower:]]``), and
patterns that are about too much, are given up: who asks must take it that any file can be meant.
"""

from __future__ import annotations

from swarm.permissions.paths import with_stars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    #: What one character of a name is compared with: a character, None for any one, or ranges and whether they count.
    Token = str | None | tuple[tuple[tuple[str, str], ...], bool]
    #: Gives the names in a folder and whether each is a folder itself, also by a link; nothing where there is none.
    Listing = Callable[[str, bool], Iterable[tuple[str, bool]]]

#: Limits on examined and found names; above them the search stops.
MOST_SEEN = 50_000
MOST_FOUND = 4_000
_STAR = "*"


class Unclear(Exception):
    """The matches of a pattern are unknown."""


def expand(pattern: str, listing: Listing, is_there: Callable[[str], bool]) -> list[str] | None:
    """Return the names that match a pattern; None if unknown, or if the search would take too long."""
    try:
        return _Walk(listing, is_there).run(pattern)
    except Unclear:
        return None


class _Walk:
    def __init__(self, listing: Listing, is_there: Callable[[str], bool]) -> None:
        self._listing = listing
        self._is_there = is_there
        self._seen = 0

    def run(self, pattern: str) -> list[str]:
        first, *rest = [part for part in pattern.split("/") if part]
        found = ["/"] if pattern.startswith("/") else [""]
        for number, part in enumerate((first, *rest)):
            found = list(self._step(found, part, last=number == len(rest)))
            if len(found) > MOST_FOUND:
                raise Unclear
        return found

    def _step(self, folders: list[str], part: str, *, last: bool) -> Iterator[str]:
        if not any(char in part for char in "*?["):
            names = (f"{folder}{part}" for folder in folders)
            yield from (name if last else f"{name}/" for name in names if self._is_there(name))
            return
        if part == "**":  # of any depth in some shells
            folders = [*folders, *self._below(folders)]
            if not last:
                yield from folders
                return
        tokens = _tokens(part)
        for folder in folders:
            for name, is_folder in self._names(folder):
                if (last or is_folder) and fits(tokens, name):
                    yield f"{folder}{name}" if last else f"{folder}{name}/"

    def _below(self, folders: list[str]) -> Iterator[str]:
        waiting = list(folders)
        while waiting:
            folder = waiting.pop()
            inner = [f"{folder}{name}/" for name, is_folder in self._names(folder, links=False) if is_folder]
            yield from inner
            waiting += inner

    def _names(self, folder: str, *, links: bool = True) -> Iterator[tuple[str, bool]]:
        for name, is_folder in self._listing(folder, links):
            self._seen += 1
            if self._seen > MOST_SEEN:
                raise Unclear
            yield name, is_folder


def fits(tokens: list[Token], name: str) -> bool:
    """Whether a file's name is of the form; a dot at its beginning must be there in the pattern."""
    if name.startswith(".") and tokens[:1] != ["."]:
        return False
    return with_stars(tokens, name, _is_one)


def _is_one(token: Token, char: str) -> bool:
    if token is None or isinstance(token, str):
        return token is None or token == char
    ranges, counts = token
    if counts:  # where letters lie a locale says, so either case will do
        return any(low <= one <= high for low, high in ranges for one in (char, char.swapcase()))
    return not any(low == char == high or (low <= char <= high and _alike(low, char, high)) for low, high in ranges)


def _alike(*chars: str) -> bool:
    """Whether characters are of one kind, so that they come one after another wherever one is."""
    return any(all(kind(char) for char in chars) for kind in (str.islower, str.isupper, str.isdigit))


def _tokens(part: str) -> list[Token]:
    """Take one name of a pattern apart.

    Raises:
        Unclear: it has a class of characters.
    """
    found: list[Token] = []
    at = 0
    while at < len(part):
        char = part[at]
        close = part.find("]", at + 3 if part.startswith(("[!", "[^"), at) else at + 2) if char == "[" else -1
        if close < 0:
            found.append(None if char == "?" else char)
            at += 1
            continue
        inside = part[at + 1 : close]
        if any(sign in inside for sign in ("[:", "[.", "[=", "\\")):
            raise Unclear
        ranges = _ranges(inside.removeprefix("!"))
        found.append(None if inside.startswith("^") else (ranges, not inside.startswith("!")))
        at = close + 1
    return found


def _ranges(text: str) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            found.append((text[at], text[at + 2]))
            at += 3
        else:
            found.append((text[at], text[at]))
            at += 1
    return tuple(found)
