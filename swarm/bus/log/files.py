"""Locks of the bus, with an end of all patience; and its errors."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING

from swarm.machine import own
from swarm.machine.locks import try_lock, unlock

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from swarm.kit.errors import SwarmError

    Patience = Callable[[], float] | None

#: Default time to wait for a lock.
PATIENCE = 60.0
#: The settings are read only after this time.
_ASKED_AFTER = 0.5
_PAUSE = 0.0003
#: Id, sender and which run of it that was stand within so many bytes of most records.
_BEGINNING = 1 << 14
_HINT = "try again; to wait longer, set messages.lock_timeout"


def lock(fd: int, path: str, patience: Patience = None, *, shared: bool = False) -> None:
    """Lock an open file; the kernel frees it when we die.

    Args:
        patience: asked for how many seconds to wait, by those who do have to wait.
        shared: together with others who want no more than that.

    Raises:
        Locked: others held it the whole time.
    """
    if try_lock(fd, shared=shared):
        return
    began = time.monotonic()
    longest = _ASKED_AFTER
    asked = False
    pause = 0.00002
    while True:
        time.sleep(pause)
        if try_lock(fd, shared=shared):
            return
        waited = time.monotonic() - began
        if waited > longest and not asked:
            asked, longest = True, PATIENCE if patience is None else patience()
        if waited > longest:
            from swarm.project.errors import Locked

            raise Locked(f"cannot lock {path} within {longest:g} s: {_holder(fd)}", hint=_HINT)
        pause = min(pause * 1.3, _PAUSE)


def lock_in_turn(fd: int, turn: int, path: str, patience: Patience = None) -> None:
    """Lock a file that is held most of the time.

    Whoever lets go of it and wants it again at once would always be faster than one that waits; so
    one first has to get the turn, which the one that waits does not give away before it has the lock.
    """
    lock(turn, path, patience)
    lock(fd, path, patience)
    unlock(turn)


def _holder(fd: int) -> str:
    """Return the process that holds a lock on this file, if the system reports it."""
    try:
        ino = str(os.fstat(fd).st_ino)
        with open("/proc/locks", encoding="ascii") as file:
            for words in map(str.split, file):
                if words[1] == "FLOCK" and words[5].rpartition(":")[2] == ino:
                    return f"process {words[4]} holds it"
    except (OSError, IndexError):
        pass
    return "another process holds it"


class locked_folder:  # noqa: N801  # reads as a statement, and contextlib costs more than this
    """Hold the lock of a folder for a block; a *shared* lock admits other shared ones."""

    __slots__ = ("_fd", "_path", "_patience", "_shared")

    def __init__(self, path: str, patience: Patience = None, *, shared: bool = False) -> None:
        self._path = path
        self._patience = patience
        self._shared = shared
        self._fd = -1

    def __enter__(self) -> None:
        self._fd = own.folder(self._path)
        try:
            lock(self._fd, self._path, self._patience, shared=self._shared)
        except BaseException:
            os.close(self._fd)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._fd)


def beginning_of(path: str) -> bytes:
    """Return how a file begins; nothing of one that is no plain file, or is missing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, _BEGINNING, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


def translated(error: OSError, what: str) -> SwarmError:
    """Turn an operating-system error into ours."""
    from swarm.kit import files

    return files.translate(error, what)


class os_errors:  # noqa: N801  # reads as a statement
    """Let no bare ``OSError`` out of this block."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if isinstance(value, OSError):
            raise translated(value, self._what) from value
