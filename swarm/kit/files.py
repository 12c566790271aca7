"""The file system, used carefully; whole files are written by ``machine/atomic.py``.

Below swarm's own folders no link is followed (``machine/own.py``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
import zlib
from typing import TYPE_CHECKING

from swarm.kit import fstree
from swarm.kit.errors import EnvironmentProblem, NoPermission, NoSpace, StateDirProblem, SwarmError, SymlinkInTheWay
from swarm.machine import atomic, own
from swarm.machine.atomic import is_temporary as is_temporary  # noqa: PLC0414  # offered here, with the next ones
from swarm.machine.atomic import sweep_temporaries as sweep_temporaries  # noqa: PLC0414
from swarm.machine.atomic import sync_folder as sync_folder  # noqa: PLC0414
from swarm.machine.atomic import write_all as write_all  # noqa: PLC0414
from swarm.machine.atomic import write_atomic as write_atomic  # noqa: PLC0414

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: Of Linux: the current folder, and "do not replace".
_HERE, _MUST_BE_FREE = -100, 1
_PIECE = 1 << 16
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def translate(error: OSError, what: str) -> SwarmError:
    """Turn an operating-system error into ours; *what* is the attempt in the user's words."""
    named = isinstance(error.filename, (str, bytes, os.PathLike))
    if error.errno == errno.ELOOP and named:
        return SymlinkInTheWay(f"{what}: {os.fsdecode(error.filename)} is a symbolic link")
    path = f" {os.fsdecode(error.filename)!r}" if named else ""
    message = f"{what}: {error.strerror or error}{path}"
    if error.errno in _FULL:
        return NoSpace(message)
    if error.errno in _FORBIDDEN:
        return NoPermission(message)
    return EnvironmentProblem(message)


@contextlib.contextmanager
def os_errors(what: str) -> Iterator[None]:
    """Let no bare ``OSError`` out of this block."""
    try:
        yield
    except OSError as error:
        raise translate(error, what) from error


def write_new(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Create *path* with *data*; an existing entry, also a dangling link, stays and is an error."""
    fd = own.open(os.fspath(path), atomic.NEW, 0o600)
    try:
        write_all(fd, data)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def append_line(path: Path, line: bytes, *, durable: bool = False) -> None:
    """Add one line to a log, whole: with one write, below the lock that the caller holds."""
    fd = own.open(os.fspath(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, line + b"\n")
        if durable:
            atomic.sync_file(fd)
    finally:
        os.close(fd)


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read; it may be of somebody who would have us wait at a pipe, or follow a link out of a box.

    Raises:
        OSError: not there, not readable.
        EnvironmentProblem: it is no regular file.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    file = open(own.open_foreign(os.fspath(path), flags), "rb")  # noqa: SIM115  # for the caller
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise EnvironmentProblem(f"cannot read {path}: it is not a regular file")
    return file


def read_small(path: Path, limit: int = 1 << 20) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: not there, not readable.
        EnvironmentProblem: it is no regular file (opening never blocks on a pipe), or larger than *limit*.
    """
    with open_regular(path) as file:
        fd = file.fileno()
        info = os.fstat(fd)
        # One byte more than there is: so the end is seen at once. It may grow meanwhile, and in /proc all have no size.
        data = os.read(fd, min(info.st_size, limit) + 1)
        while len(data) != info.st_size and len(data) <= limit and (more := os.read(fd, _PIECE)):
            data += more
    if len(data) > limit:
        raise EnvironmentProblem(f"cannot read {path}: it is larger than {limit} bytes")
    return data


def read_tail(path: Path, limit: int) -> bytes:
    """Return the last whole lines of a file that only grows, *limit* bytes at most.

    Raises:
        OSError: not there, not readable.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= limit:
            return file.read(limit)
        file.seek(size - limit)
        return file.read(limit).partition(b"\n")[2]


def make_private_dir(path: Path) -> None:
    """Make sure that *path* is a folder that only this user can write to.

    Raises:
        SymlinkInTheWay, StateDirProblem: it is something else.
    """
    with own.at(os.fspath(path)) as (at, name):
        try:
            os.mkdir(name, 0o700, dir_fd=at)
        except FileExistsError:
            _check_private(path, os.lstat(name, dir_fd=at))
        else:
            fstree.set_mode(at, name, 0o700)  # a strange umask must not decide this


def set_mode(path: Path, mode: int) -> None:
    """Set the bits of a file or folder, never of a link's target."""
    with own.at(os.fspath(path)) as (at, name):
        fstree.set_mode(at, name, mode)


def make_folders(path: Path, mode: int = 0o777) -> None:
    """Make a folder and its parents, if missing.

    Raises:
        OSError: something else is at its place, say a link.
    """
    own.make_folders(os.fspath(path), mode)


def check_folder(path: Path) -> None:
    """Refuse a path that does not lead to a folder without a link.

    Raises:
        OSError
    """
    os.close(own.folder(os.fspath(path)))


def is_folder(path: Path, *, refuse_links: bool = False) -> bool:
    """Whether a path leads to a folder, without a link.

    Raises:
        SymlinkInTheWay: there is one, if *refuse_links*.
    """
    try:
        check_folder(path)
    except OSError as error:
        if error.errno == errno.ELOOP and refuse_links:
            raise SymlinkInTheWay(f"cannot use {os.fsdecode(error.filename)}: it is a symbolic link") from None
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return False
        raise
    return True


def check_private_dir(path: Path) -> None:
    """Refuse a state folder that is a link, no folder, someone else's, or writable by others."""
    _check_private(path, own.lstat(os.fspath(path)))


def refuse_foreign(path: Path) -> None:
    """Refuse to read a state folder that is a link or belongs to another user; a missing one is neither.

    Raises:
        SymlinkInTheWay, StateDirProblem
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            raise SymlinkInTheWay(f"cannot use {path}: it is a symbolic link")
        _check_owner(path, info)


def _check_owner(path: Path, info: os.stat_result) -> None:
    if info.st_uid != os.geteuid():
        raise StateDirProblem(f"cannot use {path}: it belongs to another user (uid {info.st_uid})")


def _check_private(path: Path, info: os.stat_result) -> None:
    if stat.S_ISLNK(info.st_mode):
        raise SymlinkInTheWay(f"cannot use {path}: it is a symbolic link")
    if not stat.S_ISDIR(info.st_mode):
        raise StateDirProblem(f"cannot use {path}: it is not a folder")
    _check_owner(path, info)
    if info.st_mode & 0o022:
        raise StateDirProblem(f"cannot use {path}: others can write to it", hint=f"chmod 700 {shlex.quote(str(path))}")


def exists(path: Path) -> bool:
    """Whether anything, also a dangling link, is at *path*."""
    return os.path.lexists(path)


def remove_empty(path: Path) -> bool:
    """Remove an empty folder; return whether it is gone."""
    try:
        own.rmdir(os.fspath(path))
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY):
            return False
        raise
    return True


def unlink_if_there(path: Path) -> None:
    """Remove a file that may already be gone."""
    with contextlib.suppress(FileNotFoundError):
        own.unlink(os.fspath(path))


def rename_if_there(source: Path, target: Path) -> bool:
    """Move something aside, to another file system by copying it; False when it is missing."""
    try:
        return rename_within(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    if not exists(source):
        return False
    _move_across(source, target)
    return True


def rename_within(source: Path, target: Path) -> bool:
    """Move something aside by nothing but its name; False when it is missing.

    Raises:
        OSError: also for a place on another file system.
    """
    try:
        own.rename(os.fspath(source), os.fspath(target))
    except FileNotFoundError:
        if exists(source):
            raise
        return False
    return True


def _move_across(source: Path, target: Path) -> None:
    """Copy under another name, rename, and only then delete; may be repeated when it was killed anywhere.

    A folder that is at its place already is such a copy: it got its name when it was whole.
    """
    half = target.parent / f".moving-{zlib.crc32(os.fsencode(target.name)):08x}"
    remove_tree(half)
    if not (exists(target) and source.is_dir() and not source.is_symlink()):
        _copy(source, half, pipes=False)
    if exists(half):
        sync_filesystem(target.parent)
        own.rename(os.fspath(half), os.fspath(target))
        sync_folder(target.parent)
    remove_tree(source)


def rename_new(source: Path, target: Path) -> None:
    """Rename to a name that must be free; a plain rename would replace an empty folder.

    Raises:
        OSError: also where the system cannot do this.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(target))
    with own.at(os.fspath(source)) as (fd, name), own.at(os.fspath(target)) as (other_fd, other):
        here, there = (_HERE if at is None else at for at in (fd, other_fd))
        if libc.renameat2(here, os.fsencode(name), there, os.fsencode(other), _MUST_BE_FREE) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(target))


def remove_tree(path: Path | str) -> None:
    """Delete a folder and all below it, never through a link; folders without write permission are opened up."""
    with contextlib.suppress(FileNotFoundError), own.at(os.fspath(path)) as (at, name):
        fstree.remove(at, name)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file, a link or a whole folder, with modes and times.

    Sockets and devices are left out: nothing can be in them.  A folder that is there already is added to.
    """
    make_folders(target.parent)
    _copy(source, target, pipes=True)


def _copy(source: Path, target: Path, *, pipes: bool) -> None:
    with own.at(os.fspath(source)) as (fd, name), own.at(os.fspath(target)) as (to_fd, to_name):
        fstree.copy((fd, name), (to_fd, to_name), pipes=pipes)


def is_hollow(mode: int) -> bool:
    """Whether it is a socket or a device, which is of no use without the program that made it."""
    return not (stat.S_ISDIR(mode) or stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISFIFO(mode))


def sync_filesystem(path: Path) -> None:
    """Make everything written below the file system of *path* survive a power cut."""
    import ctypes

    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "syncfs"):
            os.sync()  # macOS: everything or nothing
        elif libc.syncfs(fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(fd)
