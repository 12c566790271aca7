"""Remove and copy entries of a folder that is held open, so that a swapped path leads nowhere.

A place is the descriptor of a folder, or None for none, and a name in it: the arguments ``dir_fd`` and path of ``os``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 20


def remove(at: int | None, name: str) -> None:
    """Delete an entry of a folder that is held open, so that a swapped path leads nowhere."""
    try:
        fd = _open(at, name)
    except NotADirectoryError:
        os.unlink(name, dir_fd=at)
        return
    try:
        with os.scandir(fd) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inner, is_folder in found:
            with contextlib.suppress(FileNotFoundError):
                try:
                    remove(fd, inner) if is_folder else os.unlink(inner, dir_fd=fd)
                except PermissionError:
                    os.fchmod(fd, 0o700)
                    remove(fd, inner)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=at)


def _open(at: int | None, name: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=at)
    except PermissionError:
        set_mode(at, name, 0o700)
        return os.open(name, flags, dir_fd=at)


def set_mode(at: int | None, name: str, mode: int) -> None:
    """Set the bits of an entry that may be unreadable, never of a link's target."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=at, follow_symlinks=False)  # macOS
        return
    with _closing(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)) as fd:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise OSError(errno.ELOOP, "it is a symbolic link", name)
        os.chmod(f"/proc/self/fd/{fd}", mode)


def copy(source: tuple[int | None, str], target: tuple[int | None, str], *, pipes: bool) -> None:
    """Copy an entry of one folder to a name in another; both are held open."""
    at, name = source
    to, other = target
    info = os.lstat(name, dir_fd=at)
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=at), other, dir_fd=to)
        os.utime(other, ns=(info.st_atime_ns, info.st_mtime_ns), dir_fd=to, follow_symlinks=False)
    elif stat.S_ISFIFO(info.st_mode) and pipes:
        os.mkfifo(other, 0o600, dir_fd=to)
        with _closing(os.open(other, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=to)) as pipe:
            os.fchmod(pipe, stat.S_IMODE(info.st_mode))
    elif stat.S_ISDIR(info.st_mode):
        with contextlib.suppress(FileExistsError):
            os.mkdir(other, 0o700, dir_fd=to)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with _closing(os.open(name, flags, dir_fd=at)) as inner, _closing(os.open(other, flags, dir_fd=to)) as made:
            for entry in os.listdir(inner):
                copy((inner, entry), (made, entry), pipes=pipes)
            _copy_facts(inner, made)
    elif stat.S_ISREG(info.st_mode):
        new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            open(name, "rb", opener=lambda _, flags: os.open(name, flags | os.O_NOFOLLOW, dir_fd=at)) as inside,
            open(other, "wb", opener=lambda *_: os.open(other, new, 0o600, dir_fd=to)) as copied,
        ):
            for start, end in _written(inside.fileno()):
                inside.seek(start)
                copied.seek(start)
                left = end - start
                while left > 0 and (data := inside.read(min(_PIECE, left))):
                    left -= copied.write(data)
            copied.truncate(os.fstat(inside.fileno()).st_size)
            _copy_facts(inside.fileno(), copied.fileno())


def _written(fd: int) -> Iterator[tuple[int, int]]:
    """Give the parts of a file that are no holes: terabytes of nothing are copied at once, and take no room."""
    size, at = os.fstat(fd).st_size, 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
        except (AttributeError, OSError) as error:
            if getattr(error, "errno", None) != errno.ENXIO:  # else there is nothing more
                yield at, size  # the system knows of no holes
            return
        yield start, at


def _copy_facts(source: int, target: int) -> None:
    """Give an open file the attributes, the bits and the times of another."""
    for name in os.listxattr(source) if hasattr(os, "listxattr") else ():
        with contextlib.suppress(OSError):  # not every file system takes every attribute
            os.setxattr(target, name, os.getxattr(source, name))
    info = os.fstat(source)
    os.fchmod(target, stat.S_IMODE(info.st_mode))
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))


@contextlib.contextmanager
def _closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)
