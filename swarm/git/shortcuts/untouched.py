"""Detect, without running git, that a checkout has no changes.

Every file is exactly as the index knows it, and no folder has a name that the index does not.  That is
enough to say "clean"; in all other cases, ignored files among them, git is asked.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from swarm.git.shortcuts import index as indexes
from swarm.kit import files
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.git.shortcuts.copying import Entry, Source

#: From so many on, a git that looks beside us is quicker.
_FEW = 400
_SECOND = 10**9
_ALWAYS_VALID = 0x80


def is_untouched(source: Source, checkout: Path, written_ns: int, hidden: Sequence[str]) -> bool:
    """Whether *checkout* equals its index beyond doubt.

    Args:
        written_ns: when the index was written; a file of that moment may have changed without a trace.
        hidden: folders at the top that hide their content from git themselves.
    """
    if len(source.entries) > _FEW:
        return False
    try:
        top = os.open(checkout, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return all(_is_as_known(source.head, entry, top, written_ns) for entry in source.entries) and _no_more(
            source, top, {b".git", *(os.fsencode(name) for name in hidden)}
        )
    except OSError:
        return False
    finally:
        os.close(top)


def hides_itself(folder: Path) -> bool:
    """Whether a folder's own ignore file hides all that is in it; git follows no link to one."""
    file = folder / ".gitignore"
    try:
        lines = [] if file.is_symlink() else files.read_small(file).split(b"\n")
    except (OSError, SwarmError):
        return False
    return b"*" in lines and not any(line.startswith(b"!") for line in lines)


def _is_as_known(head: bytes, entry: Entry, top: int, written_ns: int) -> bool:
    info = os.lstat(entry.path, dir_fd=top)
    if head[entry.place + 60] & _ALWAYS_VALID or info.st_mtime_ns >= written_ns:
        return False
    changed, written = divmod(info.st_ctime_ns, _SECOND), divmod(info.st_mtime_ns, _SECOND)
    word = indexes.WORD
    found = (
        *(changed[0] & word, changed[1], written[0] & word, written[1]),
        *(info.st_dev & word, info.st_ino & word, _git_mode(info.st_mode)),
        *(info.st_uid & word, info.st_gid & word, info.st_size & word),
    )
    return indexes.STAT.unpack_from(head, entry.place) == found


def _git_mode(mode: int) -> int:
    if stat.S_ISREG(mode):
        return stat.S_IFREG | (0o755 if mode & 0o100 else 0o644)
    return stat.S_IFMT(mode)


def _no_more(source: Source, top: int, hidden: set[bytes]) -> bool:
    """Whether no folder has a name that is not tracked, or hidden at the top."""
    for folder, names in source.names.items():
        there = names if folder else names | hidden
        fd = os.open(folder or b".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
        try:
            if not there.issuperset(map(os.fsencode, os.listdir(fd))):
                return False
        finally:
            os.close(fd)
    return True
