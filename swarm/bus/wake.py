"""Wait until something is added to a box.

inotify is a hint that saves time, nothing more: whoever waits looks again by itself every two
seconds, so a lost event, an overflow of its queue, or a network file system cost time only.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from swarm.bus.wire import PRIORITIES
from swarm.machine import inotify

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from swarm.bus.box import Box

SCAN_EVERY = 2.0
_POLL_EVERY = 0.05
_EVENTS = inotify.MODIFY | inotify.CLOSE_WRITE | inotify.MOVED_TO | inotify.CREATE


class Wake:
    """A watch over folders."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.box = b""  # which box it watches: one of the same path may take its place
        self._poll: Any = None
        self._fd = _inotify(folders)
        if self._fd >= 0:
            import select

            self._poll = select.poll()
            self._poll.register(self._fd, select.POLLIN)

    def __del__(self) -> None:
        self.close()

    @property
    def longest(self) -> float:
        """How long one should wait at most before looking again."""
        return SCAN_EVERY if self._fd >= 0 else _POLL_EVERY

    def wait(self, seconds: float) -> None:
        """Return when something may have happened, or after a time."""
        seconds = max(0.0, min(seconds, self.longest))
        if self._poll is None:
            time.sleep(seconds)
        elif self._poll.poll(seconds * 1000):
            inotify.drain(self._fd)  # each report only means "look"

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._poll = None


class Watches:
    """The watches over a box that one waiting reader uses, kept with the box for the next time.

    The kernel takes milliseconds to close a watch, more than all the rest of a receive.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self._used: dict[bool, Wake] = {}

    def wait(self, seconds: float, *, readers_only: bool) -> None:
        """Wait for a change that may matter to the reader. The first call only starts watching, so look again."""
        watch = self._used.get(readers_only)
        if watch is None:
            kept = self._box.watches[readers_only]
            watch = kept.pop() if kept else None
            if watch is None or watch.box != self._box.reader_log.identity:
                if watch is not None:
                    watch.close()
                names = ("reader",) if readers_only else (*PRIORITIES, "reader", "drop")
                self._used[readers_only] = Wake(f"{self._box.folder}/{name}" for name in names)
                self._used[readers_only].box = self._box.reader_log.identity
                return
            self._used[readers_only] = watch
        watch.wait(seconds)

    def put_back(self) -> None:
        """Keep them for the next reader of this process."""
        for readers_only, watch in self._used.items():
            self._box.watches[readers_only].append(watch)


def _inotify(folders: Iterable[str]) -> int:
    """Return a descriptor that reports changes in the folders, or -1 without inotify."""
    fd = inotify.begin()
    for folder in folders if fd >= 0 else ():
        if inotify.add(fd, folder, _EVENTS) < 0:
            os.close(fd)
            return -1
    return fd
