"""Files below swarm's own folders, opened and changed without following a link.

A path is walked from a trusted folder (``.swarm``, ``.worktrees``) by descriptors, so that neither a link nor a
folder that is exchanged for one in between leads anywhere else.  A link in the way is an ``OSError`` (``ELOOP``)
that names it.  Below no trusted folder a path is used as the system does.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import stat_result
    from types import TracebackType

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: To walk through a folder one need not be allowed to list it.
_THROUGH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KIND, _LINK = 0o170000, 0o120000  # `stat` tells the same
_TRUSTED: set[str] = set()
_SESSIONS, _BOX = "/sessions/", "/box/"
#: The folder of the box of a task that works in a folder; see ``tasks/workspace.py``.
TASK_BOX = ".swarm-box"


def trust(folder: str) -> None:
    """From now on follow no link at this absolute path, nor at any below it."""
    _TRUSTED.add(folder.rstrip("/"))


def trust_state_of(run_dir: str) -> None:
    """Follow no link below the state folder in which the run folder of an agent or a task is."""
    state, *between = run_dir.rstrip("/").rsplit("/", 4)
    if len(between) == 4 and (between[0], between[2]) in (("sessions", "run"), ("tasks", "runs")):
        trust(state)


def trusted(path: str) -> str | None:
    """Return the outermost trusted folder that a path is, or is below."""
    end = path.find("/", 1)
    while end > 0:
        if path[:end] in _TRUSTED:
            return path[:end]
        end = path.find("/", end + 1)
    return path if path in _TRUSTED else None


class at:  # noqa: N801  # reads as a statement
    """Hold the folder that a path is in: gives its descriptor and the name in it, for the ``dir_fd`` of a call.

    The descriptor is None, and the name the path, where no link is looked for.
    """

    __slots__ = ("_fd", "_name", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._name = path
        self._fd = -1

    def __enter__(self) -> tuple[int | None, str]:
        top = trusted(self._path)
        if top is None or top == self._path:
            return None, self._path
        above, _, name = self._path.rpartition("/")
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "names no entry of a folder", self._path)
        self._name = name
        self._fd = _walk(top, above, _THROUGH)
        return self._fd, name

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            if isinstance(value, OSError) and value.filename in (self._name, os.fsencode(self._name)):
                value.filename = self._path  # the call knew only the name


def folder(path: str) -> int:
    """Open a folder to list, lock or sync it.

    Raises:
        OSError: it is none; ``ELOOP``: it, or a folder above it, is a link.
    """
    top = trusted(path)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if top is None else _walk(top, path, _FOLDER)


def box_of(path: str) -> str:
    """Return the folder of a box in which a path lies; empty: in none.

    It is ``…/sessions/SESSION/box/AGENT`` of an agent, and ``…/.swarm-box`` of a task.
    """
    before, of_task, _ = path.partition(f"/{TASK_BOX}/")
    if of_task:
        return f"{before}/{TASK_BOX}"
    at = path.find(_BOX)
    while at >= 0:
        session = path[:at].rpartition(_SESSIONS)
        agent, found, _ = path[at + len(_BOX) :].partition("/")
        if session[1] and session[2] and "/" not in session[2] and found and agent not in ("", ".", ".."):
            return f"{path[:at]}{_BOX}{agent}"
        at = path.find(_BOX, at + 1)
    return ""


def open_foreign(path: str, flags: int) -> int:
    """Open a file that somebody else may have put there; below the box of an agent no link is followed.

    Raises:
        OSError: ``ELOOP``: there is one.
    """
    box = box_of(path)
    if not box:
        return os.open(path, flags)
    above, _, name = path.rpartition("/")
    if name in ("", ".", ".."):
        raise OSError(errno.EINVAL, "names no entry of a folder", path)
    fd = _walk(box, above, _THROUGH)
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
    finally:
        os.close(fd)


def folder_below(top: str, path: str) -> int:
    """Open a folder below another one to list it, following no link from there on."""
    return _walk(top, path, _FOLDER)


def _walk(top: str, path: str, flags: int) -> int:
    """Open a folder, and before it each from *top* down to it."""
    parts = path[len(top) + 1 :].split("/") if path != top else []
    if ".." in parts:
        raise OSError(errno.EINVAL, "leads upwards", path)
    fd = _enter(None, top, top, _THROUGH if parts else flags)
    so_far = top
    for number, part in enumerate(parts, 1):
        so_far = f"{so_far}/{part}"
        try:
            inner = _enter(fd, part, so_far, flags if number == len(parts) else _THROUGH)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _enter(fd: int | None, name: str, path: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=fd)
    except OSError as error:
        error.filename = path
        # The system says of a link that is to be a folder only that it is none.
        if error.errno == errno.ENOTDIR and os.lstat(name, dir_fd=fd).st_mode & _KIND == _LINK:
            raise OSError(errno.ELOOP, "it is a symbolic link", path) from None
        raise


def open(path: str, flags: int, mode: int = 0o777) -> int:  # noqa: A001  # used as own.open
    """Do as ``os.open``."""
    with at(path) as (fd, name):
        return os.open(name, flags | (0 if fd is None else os.O_NOFOLLOW), mode, dir_fd=fd)


def mkdir(path: str, mode: int = 0o777) -> None:
    """Do as ``os.mkdir``."""
    with at(path) as (fd, name):
        os.mkdir(name, mode, dir_fd=fd)


def make_folders(path: str, mode: int = 0o777) -> None:
    """Make a folder and its parents, if missing.

    Raises:
        OSError: something else is at its place, say a link.
    """
    try:
        mkdir(path, mode)
    except FileExistsError:
        os.close(folder(path))
    except FileNotFoundError:
        above = path.rpartition("/")[0]
        if not above:
            raise
        make_folders(above, mode)
        make_folders(path, mode)


def rmdir(path: str) -> None:
    """Do as ``os.rmdir``."""
    with at(path) as (fd, name):
        os.rmdir(name, dir_fd=fd)


def unlink(path: str) -> None:
    """Do as ``os.unlink``."""
    with at(path) as (fd, name):
        os.unlink(name, dir_fd=fd)


def lstat(path: str) -> stat_result:
    """Do as ``os.lstat``."""
    with at(path) as (fd, name):
        return os.lstat(name, dir_fd=fd)


def utime(path: str, times: tuple[int, int] | None = None) -> None:
    """Set the times of an entry, in nanoseconds; of a link its own."""
    with at(path) as (fd, name):
        if times is None:
            os.utime(name, dir_fd=fd, follow_symlinks=False)
        else:
            os.utime(name, ns=times, dir_fd=fd, follow_symlinks=False)


def rename(source: str, target: str) -> None:
    """Do as ``os.rename``."""
    with at(source) as (fd, name), at(target) as (other_fd, other):
        os.rename(name, other, src_dir_fd=fd, dst_dir_fd=other_fd)


def replace(source: str, target: str) -> None:
    """Do as ``os.replace``."""
    with at(source) as (fd, name), at(target) as (other_fd, other):
        os.replace(name, other, src_dir_fd=fd, dst_dir_fd=other_fd)


def link(source: str, target: str) -> None:
    """Do as ``os.link``; of a link, make another name for itself."""
    with at(source) as (fd, name), at(target) as (other_fd, other):
        os.link(name, other, src_dir_fd=fd, dst_dir_fd=other_fd, follow_symlinks=False)


def symlink(said: str, path: str) -> None:
    """Do as ``os.symlink``."""
    with at(path) as (fd, name):
        os.symlink(said, name, dir_fd=fd)


def listdir(path: str) -> list[str]:
    """Do as ``os.listdir``."""
    fd = folder(path)
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)
