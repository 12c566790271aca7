"""Sync a log: every writer for itself and in parallel, so the disk merges the work.

The system reports a failed write once to each open file.  Threads share that, so a failure of one is one of all.
"""

from __future__ import annotations

import errno
import os
from threading import Lock

from swarm.machine.atomic import sync_data


class Opening:
    """This process's knowledge of a file since it opened it.

    Args:
        number: which opening of its log that is.
        at: where in the file begins what it added itself.

    Attributes:
        failed: a sync failed: what a later one says of what was written before means nothing.
        turn: of the threads of this process.
    """

    __slots__ = ("at", "failed", "number", "turn")

    def __init__(self, number: int, at: int) -> None:
        self.number = number
        self.at = at
        self.failed = False
        self.turn = Lock()


class Handle:
    """Something that was added to a file and is to be on the disk; the log may meanwhile go on, or be closed.

    Args:
        fd: of the file; is closed by ``sync``.
    """

    __slots__ = ("_fd", "_opening")

    def __init__(self, fd: int, opening: Opening) -> None:
        self._fd = fd
        self._opening = opening

    def sync(self) -> None:
        """Return when it is on the disk. A sync that failed is never tried again.

        Raises:
            OSError: it may not be.
        """
        opening = self._opening
        try:
            with opening.turn:
                if opening.failed:  # for another thread: the system does not say it twice
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                try:
                    sync_data(self._fd)
                except OSError:
                    opening.failed = True
                    raise
        finally:
            os.close(self._fd)
