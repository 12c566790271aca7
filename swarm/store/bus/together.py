"""Syncing together: of many who wait for the same file to be on the disk, one syncs it for all.

Beside a log lies a small file that tells which records the last one who synced knows to be on the disk: all
behind ``since`` up to ``upto``.  It is locked by whoever syncs, and all others look into it meanwhile.

A sync proves something only about what was written after the syncing process had opened the file: the system
reports a failed write once to each who has it open by then.  So ``since`` is the last record before the first
one that this process added itself.  The lock only saves work: who does not get it in time syncs, too.
"""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from time import sleep
from zlib import crc32

from swarm.store.bus import lines
from swarm.store.bus.files import sync_data

_AT_ONCE = LOCK_EX | LOCK_NB
#: Some 40 ms in all: many syncs of a fast disk, and a few of a slow one.
_PAUSE, _LONGEST_PAUSE, _TRIES = 0.00005, 0.001, 60
_NUMBER = 8
_LENGTH = 2 * _NUMBER


class Opening:
    """What this process knows of a file since it opened it.

    Args:
        number: which opening of its log that is.
        since: the last record before its own first one.
        at: where that one begins in the file.

    Attributes:
        failed: a sync failed: what a later one says of what was written before means nothing.
        mark: the file beside it, open; -1 when each syncs alone.
        turn: of the threads of this process: they share what the system reports.
    """

    __slots__ = ("at", "failed", "is_new", "mark", "number", "since", "turn")

    def __init__(self, number: int, since: int, at: int) -> None:
        self.number = number
        self.since = since
        self.at = at
        self.failed = False
        self.is_new = True
        self.mark = -1
        self.turn = allocate_lock()

    def share(self, folder: str) -> None:
        """From now on sync together with others."""
        self.is_new = False
        try:
            self.mark = os.open(mark_of(folder), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            self.mark = -1  # no room for it, or no right

    def let_go(self) -> None:
        """From now on sync alone."""
        if self.mark >= 0:
            os.close(self.mark)
            self.mark = -1

    def __del__(self) -> None:
        self.let_go()


class Handle:
    """Something that was added to a file and is to be on the disk; the log may meanwhile go on, or be closed.

    Args:
        fd: of the file; is closed by ``sync``.
        number: of the last record that must be there; -1: all there are.
    """

    __slots__ = ("_fd", "_number", "_opening")

    def __init__(self, fd: int, number: int, opening: Opening) -> None:
        self._fd = fd
        self._number = number
        self._opening = opening

    def sync(self) -> None:
        """Return when it is on the disk. A sync that failed is never tried again.

        Raises:
            OSError: it may not be.
        """
        try:
            if self._opening.mark < 0 or self._number < 0 or not self._together():
                self._sync()
        finally:
            os.close(self._fd)

    def _together(self) -> bool:
        """Wait until others have synced it, or sync for all; False: neither could be done in time."""
        pause = _PAUSE
        for _ in range(_TRIES):
            try:
                flock(self._opening.mark, _AT_ONCE)
            except BlockingIOError:
                if self._is_done():
                    return True
                sleep(pause)
                pause = min(pause * 1.15, _LONGEST_PAUSE)
                continue
            try:
                if not self._is_done():
                    self._sync_for_all()
                return True
            finally:
                flock(self._opening.mark, LOCK_UN)
        return False

    def _is_done(self) -> bool:
        data = os.pread(self._opening.mark, _LENGTH + 4, 0)
        if len(data) != _LENGTH + 4 or crc32(data[:_LENGTH]) != int.from_bytes(data[_LENGTH:], "big"):
            return False  # there is none yet, or it is being written
        since, upto = int.from_bytes(data[:_NUMBER], "big"), int.from_bytes(data[_NUMBER:_LENGTH], "big")
        return since < self._number <= upto

    def _sync_for_all(self) -> None:
        """Sync, and tell what that made durable: all that was there before it."""
        size = os.fstat(self._fd).st_size
        end = os.pread(self._fd, lines.END_IN, max(0, size - lines.END_IN))
        last = lines.number_of(end[:-1]) if end[-1:] == b"\n" else -1  # else somebody is writing just now
        self._sync()
        data = self._opening.since.to_bytes(_NUMBER, "big") + max(last, self._number).to_bytes(_NUMBER, "big")
        try:
            os.pwrite(self._opening.mark, data + crc32(data).to_bytes(4, "big"), 0)
        except OSError:
            return  # no room for it: then each syncs alone

    def _sync(self) -> None:
        with self._opening.turn:
            try:
                sync_data(self._fd)
            except OSError:
                self._opening.failed = True
                raise
            if self._opening.failed:  # for another thread: the system does not say it twice
                raise OSError(errno.EIO, os.strerror(errno.EIO))


def mark_of(folder: str) -> str:
    """Return where the file lies: not in the folder of the log, which readers watch."""
    return folder + ".synced"
