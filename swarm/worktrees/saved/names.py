"""What a name says of a file: whether it is precious, can be made again, or cannot be saved by git."""

from __future__ import annotations

import fnmatch
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swarm.project.config.sections import Cleanup


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether the last part of a path matches a name or pattern."""
    return bool(_expression(tuple(patterns)).match(path.rpartition("/")[2]))


@cache
def _expression(patterns: tuple[str, ...], flags: int = 0) -> re.Pattern[str]:
    """Return what matches all names of some patterns: one look at each of a hundred thousand files."""
    return re.compile("|".join(map(fnmatch.translate, patterns)) or "(?!)", flags)


def is_precious(path: str, rules: Cleanup) -> bool:
    """Whether a file has a precious name, however that is written."""
    return bool(_expression(tuple(rules.precious), re.IGNORECASE).match(path.rpartition("/")[2]))


def is_droppable(path: str, rules: Cleanup) -> bool:
    """Whether a program can regenerate a file; precious files in a folder do not count, because a user put them there.

    A folder full of other people's files is dropped with all of them: their tests come with keys by the hundred.
    """
    *folders, name = path.split("/")
    if matches(name, rules.bulk):
        return True
    if not any(matches(folder, rules.bulk) for folder in folders):
        return False
    return not is_precious(name, rules) or any(matches(folder, rules.installed) for folder in folders)


def roots_of(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Name dropped files by their topmost folder, not one by one."""
    roots = set()
    for path in paths:
        parts = path.split("/")
        depth = next(n for n, part in enumerate(parts) if matches(part, patterns))
        roots.add("/".join(parts[: depth + 1]) + ("/" if depth + 1 < len(parts) else ""))
    return tuple(sorted(roots))


def git_can_name(path: str) -> bool:
    """Whether git takes this name into a tree; git refuses names that some file system reads as ``.git``."""
    for part in path.split("/"):
        plain = part.split(":")[0].rstrip(" .").casefold()
        if plain in {"", ".git", "git~1"} or (not part.isascii() and ".git" in _without_ignorable(part)):
            return False
    return True


def _without_ignorable(part: str) -> str:
    return "".join(c for c in part if c.isascii()).casefold()
