"""File locks, which the kernel frees when their holder dies: the only ``flock``.

The repository's own lock is `project/lock.py`, through filelock; it is held across git processes.
"""

from __future__ import annotations

from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Lock an open file if nobody holds it; *shared* with others who do so."""
    try:
        flock(fd, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(fd: int) -> None:
    """Lock an open file, however long that takes."""
    flock(fd, LOCK_EX)


def unlock(fd: int) -> None:
    """Give the lock back."""
    flock(fd, LOCK_UN)
