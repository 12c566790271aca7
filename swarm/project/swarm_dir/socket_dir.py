"""A folder for sockets, whose path is short enough for the kernel."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import (
    StateDirProblem,
    SymlinkInTheWay,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# A socket's path has room for 108 bytes on Linux and 104 on macOS, its end included.
_LONGEST_SOCKET_PATH = 100
_LONGEST_SOCKET_NAME = 48
_SHARED_TEMPORARY = Path("/tmp")  # noqa: S108  # TMPDIR is too long on macOS; owner is checked


_SOCKETS = "sockets"
_READABLE = 24


def folder_of(swarm_dir: Path) -> Path:
    """Return the folder of sockets in a swarm directory."""
    return swarm_dir / _SOCKETS


def agent_socket(swarm_dir: Path, root: Path, session: str, agent: str) -> Path:
    """Return the file of an agent's socket; repositories that share a swarm directory have one each.

    Its path may be too long for the kernel: see ``short``.
    """
    import hashlib

    whose = b"\0".join((os.fsencode(root), session.encode(), agent.encode()))
    mark = hashlib.sha256(whose).hexdigest()[:12]
    return folder_of(swarm_dir) / f"{f'{agent}-{session}'[:_READABLE]}-{mark}.sock"


def short(folder: Path, environ: Mapping[str, str]) -> Path:
    """Make a folder of sockets, and return a path of it that is short enough for the kernel.

    Raises:
        SymlinkInTheWay, StateDirProblem: something else stands in the way.
        OSError: it cannot be made.
    """
    files.make_private_dir(folder)
    files.set_mode(folder, 0o700)
    if fits(folder):
        return folder
    real = Path(os.path.realpath(folder))
    link = short_link(real, Path(environ.get("XDG_RUNTIME_DIR", "")))
    point(link, real)
    return link


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
        _sweep(link)
        return
    info = link.lstat()
    if not stat.S_ISLNK(info.st_mode):
        raise StateDirProblem(f"cannot use {link}: it is not our link", hint="remove it")
    if info.st_uid != os.geteuid() or os.readlink(link) != str(real):
        raise SymlinkInTheWay(f"cannot use {link}: it is not our link to {real}", hint="remove it")


def _sweep(made: Path) -> None:
    """Remove our links beside a new one whose folder is gone."""
    before, length = made.name[: -len(made.name.rpartition("-")[2])], len(made.name)
    with contextlib.suppress(OSError), os.scandir(made.parent) as entries:
        for entry in entries:
            alike = entry.name.startswith(before) and len(entry.name) == length and entry.is_symlink()
            if alike and entry.stat(follow_symlinks=False).st_uid == os.geteuid() and not os.path.exists(entry.path):
                os.unlink(entry.path)
