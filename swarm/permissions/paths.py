"""Match paths against the patterns of permission rules, as in ``.gitignore``.

src/*.py      below the worktree           *.env       of that name, wherever
/docs         at the root of the worktree  docs/**     everything in it; so does docs/
//etc/**      absolute                     ~/.ssh/**   in the user's home
"""

from __future__ import annotations

from collections import namedtuple
from posixpath import normpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    T = TypeVar("T")

_LONGEST_PATH = 4096
_MOST_STARS = 20


class Place(namedtuple("Place", ("cwd", "root", "home", "real", "names"), defaults=("/", "", "", None, None))):
    """Where a tool call is made.

    Attributes:
        cwd: the folder that relative paths count from.
        root: the worktree, where rules for paths begin; empty is *cwd*.
        home: what ``~`` means; empty: nothing is known below it.
        real: follows links; a path must be allowed as written and as what it leads to.
        names: the files that a pattern of a shell stands for at this moment; None where that cannot be told.
    """

    __slots__ = ()


def check(pattern: str) -> None:
    """Refuse an invalid pattern.

    Raises:
        ValueError: the text says why.
    """
    if ".." in pattern.split("/"):
        raise ValueError("must not contain '..'")
    if pattern.startswith("!"):
        raise ValueError("cannot be turned around with !; use the other list")
    if pattern.count("*") > _MOST_STARS:
        raise ValueError(f"has more than {_MOST_STARS} stars")


def absolute(path: str, place: Place) -> str:
    """Return a path from the root of the file system, without ``.`` and ``..``."""
    if path == "~" or path.startswith("~/"):
        path = f"{place.home}{path[1:]}" if place.home else f"/{path}"
    elif not path.startswith("/"):
        path = f"{place.cwd}/{path}"
    return "/" + normpath(path).lstrip("/")


def spellings(path: str, place: Place) -> set[str]:
    """Return the forms of a path that count in rules: as written, and with links followed, before and after ``..``."""
    whole = absolute(path, place)
    if place.real is None:
        return {whole}
    return {whole, place.real(whole), place.real(path if path.startswith("/") else f"{place.cwd}/{path}")}


def forbids(pattern: str, path: str, place: Place) -> bool:
    """Whether a rule is about a path under any of its names: links in the rule and above the worktree count, too."""
    names = spellings(path, place)
    if any(match(pattern, one, here) for here in _seen_through(place) for one in names):
        return True
    folder = _real_folder(pattern, place)
    return bool(folder) and any(one == folder or one.startswith(f"{folder}/") for one in names)


def is_above(path: str, pattern: str, place: Place) -> bool:
    """Whether all that a rule is about lies in a folder, as far as the rule says where it lies."""
    fixed = fixed_part(pattern, place)
    return bool(fixed) and any(one in ("/", fixed) or fixed.startswith(f"{one}/") for one in spellings(path, place))


def fixed_part(pattern: str, place: Place) -> str:
    """Return the folder or file up to which a rule has no stars; empty when it is about a name wherever it is."""
    base, rest = _base_of(pattern, place)
    parts = [part for part in rest.split("/") if part]
    if base is None or ("/" not in rest.rstrip("/")):
        return ""
    plain = next((n for n, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    return absolute("/".join(["", base.strip("/"), *parts[:plain]]), place)


def could_end(pattern: str, path: str) -> bool:
    """Whether a path in an unknown folder can match a rule about a known place."""
    while path == ".." or path.startswith("../"):
        path = path[3:]
    path = normpath(path) if path else "."
    parts = [part for part in pattern.removeprefix("~").split("/") if part]
    if "/" not in pattern.rstrip("/"):
        return False  # of a name wherever it is, so it is seen
    return path == "." or any(_fits("/" + "/".join(parts[n:]), path) for n in range(len(parts)))


def _seen_through(place: Place) -> tuple[Place, ...]:
    if place.real is None:
        return (place,)
    root = place.real(absolute(place.root or place.cwd, place))
    home = place.real(place.home) if place.home else ""
    return (place,) if (root, home) == (place.root, place.home) else (place, place._replace(root=root, home=home))


def _real_folder(pattern: str, place: Place) -> str:
    """Return the real path of a folder or file that a rule covers whole; empty if the rule has other stars."""
    whole = pattern.removesuffix("/**")
    fixed = "" if place.real is None or "*" in whole or "?" in whole else fixed_part(pattern, place)
    return place.real(fixed) if place.real is not None and fixed not in ("", "/") else ""


def match(pattern: str, path: str, place: Place) -> bool:
    """Whether an absolute path is of the form, or in a folder that is."""
    if len(path) > _LONGEST_PATH:
        return False
    base, rest = _base_of(pattern, place)
    if base is None:
        return False
    inside = "" if base == "/" else base
    if path != base and not path.startswith(f"{inside}/"):
        return False
    return _fits(rest, path[len(inside) :].lstrip("/"))


def _base_of(pattern: str, place: Place) -> tuple[str | None, str]:
    """Return where a pattern begins, and the rest of it; a leading slash keeps it there."""
    root = absolute(place.root or place.cwd, place)
    if pattern.startswith("//"):
        return "/", pattern[1:]
    if pattern == "~" or pattern.startswith("~/"):
        return (absolute(place.home, place) if place.home else None), "/" + pattern[2:]
    return root, pattern.removeprefix("./") if not pattern.startswith("./") else "/" + pattern[2:]


def _fits(pattern: str, path: str) -> bool:
    """Whether a path below the base of a pattern, or a folder above it, is of the pattern's form.

    Wherever the parts so far can end is carried along, so the time does not grow with the number of stars.
    """
    parts = [part for part in pattern.split("/") if part]
    names = path.split("/")
    at = {0} if "/" in pattern.rstrip("/") else set(range(len(names)))
    for number, part in enumerate(parts):
        if part != "**":
            at = {one + 1 for one in at if one < len(names) and _is_name(part, names[one])}
        elif number == len(parts) - 1:
            at = {one for one in at if one < len(names) and names[one]}
        else:
            at = set(range(min(at), len(names)))
        if not at:
            return False
    return True


def _is_name(part: str, name: str) -> bool:
    """Whether a file's name is of the form, with ``*`` for anything and ``?`` for one character."""
    return with_stars(part, name, lambda one, char: one in ("?", char))


def with_stars(form: Sequence[T], name: str, is_one: Callable[[T, str], bool]) -> bool:
    """Whether a name fits a pattern, in which ``*`` is anything and *is_one* compares each other part."""
    at, star, again, here = 0, -1, 0, 0
    while here < len(name):
        if at < len(form) and form[at] == "*":
            star, again = at, here
            at += 1
        elif at < len(form) and is_one(form[at], name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:  # let the last star take one character more
            again += 1
            at, here = star + 1, again
        else:
            return False
    return all(one == "*" for one in form[at:])
