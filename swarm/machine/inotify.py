"""inotify: the kernel tells what changed in folders. Linux alone has it; everywhere else there is none."""

from __future__ import annotations

import contextlib
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200
#: The folder itself is no longer watched: it is gone, or was unmounted.
IGNORED = 0x8000
#: More happened than the kernel keeps: what it was is not known.
OVERFLOW = 0x4000
_ONLY_FOLDERS, _NO_LINK = 0x1000000, 0x2000000
_HEAD = struct.Struct("iIII")
_MOST = 1 << 16

_library: list[Any] = []


def _libc() -> Any:
    """Return the C library; None where it has no inotify."""
    if not _library:
        import ctypes

        try:
            libc = ctypes.CDLL(None)
            libc.inotify_init1, libc.inotify_add_watch  # noqa: B018  # are they there?
            _library.append(libc)
        except (OSError, AttributeError):
            _library.append(None)
    return _library[0]


def begin() -> int:
    """Return a descriptor that becomes readable when something happens; -1 without inotify."""
    try:
        libc = _libc()
    except ImportError:  # a Python without ctypes
        return -1
    return -1 if libc is None else int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))


def add(fd: int, folder: str, events: int, *, follow: bool = True) -> int:
    """Watch a folder; return its number in what is reported, and -1 if it cannot be watched.

    Args:
        follow: also watch a folder that is reached through a link of this name.
    """
    mask = events | _ONLY_FOLDERS | (0 if follow else _NO_LINK)
    return int(_library[0].inotify_add_watch(fd, os.fsencode(folder), mask))


def remove(fd: int, number: int) -> None:
    """Watch a folder no more; one that is gone is fine."""
    _library[0].inotify_rm_watch(fd, number)


def drain(fd: int) -> None:
    """Drop all pending reports, also an overflow."""
    with contextlib.suppress(BlockingIOError):
        while len(os.read(fd, _MOST)) > _MOST >> 1:
            pass


def read(fd: int) -> list[tuple[int, int, str]]:
    """Return all pending reports: number of the folder, what happened, and the name in it."""
    found: list[tuple[int, int, str]] = []
    with contextlib.suppress(BlockingIOError):
        while data := os.read(fd, _MOST):
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                found.append((number, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))))
            if len(data) <= _MOST >> 1:
                break
    return found
