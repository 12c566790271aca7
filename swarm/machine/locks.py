"""File locks, which the kernel frees when their holder dies: the only ``flock``.

The repository's own lock is `project/lock.py`, through filelock; it is held across git processes.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file if it is free; *shared* lets others share it."""
    try:
        flock(fd, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: str | os.PathLike[str]) -> bool:
    """Whether a process holds the lock of a file; a missing file has none."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(fd, shared=True)
    finally:
        os.close(fd)


def lock(fd: int) -> None:
    """Lock an open file, however long that takes."""
    flock(fd, LOCK_EX)


def unlock(fd: int) -> None:
    """Give the lock back."""
    flock(fd, LOCK_UN)
