"""A folder for sockets, whose path is short enough for the kernel."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from swarm.kit import files
from swarm.kit.errors import (
    StateDirProblem,
    SymlinkInTheWay,
)

# A socket's path has room for 108 bytes on Linux and 104 on macOS, its end included.
_LONGEST_SOCKET_PATH = 100
_LONGEST_SOCKET_NAME = 48
_SHARED_TEMPORARY = Path("/tmp")  # noqa: S108  # TMPDIR is too long on macOS; owner is checked


def fits(folder: Path) -> bool:
    """Whether a socket in the folder has a path that the kernel takes."""
    return len(os.fsencode(folder)) + 1 + _LONGEST_SOCKET_NAME <= _LONGEST_SOCKET_PATH


def short_link(real: Path, runtime: Path) -> Path:
    """Return the place for the short link: its folder is ours, and no one else can write there.

    Args:
        runtime: the user's folder for such, if it is one.
    """
    import hashlib  # with its library a noticeable load, and seldom needed

    mark = hashlib.sha256(os.fsencode(real)).hexdigest()[:12]
    link = runtime / f"swarm-{mark}"
    if runtime.is_absolute() and _is_private(runtime) and fits(link):
        return link
    ours = _SHARED_TEMPORARY / f"swarm-{os.geteuid()}"
    files.make_private_dir(ours)
    return ours / mark


def _is_private(folder: Path) -> bool:
    try:
        info = folder.stat()
    except OSError:
        return False
    ours = info.st_uid == os.geteuid() and stat.S_ISDIR(info.st_mode)
    return ours and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def point(link: Path, real: Path) -> None:
    """Make *link* lead to *real*; one that is already there must be ours and do just that."""
    with contextlib.suppress(FileExistsError):
        link.symlink_to(real)
        return
    info = link.lstat()
    if not stat.S_ISLNK(info.st_mode):
        raise StateDirProblem(f"cannot use {link}: it is not our link", hint="remove it")
    if info.st_uid != os.geteuid() or os.readlink(link) != str(real):
        raise SymlinkInTheWay(f"cannot use {link}: it is not our link to {real}", hint="remove it")
