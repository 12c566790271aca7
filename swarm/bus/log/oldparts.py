"""Closed parts of a log: their content, and their removal.

Places in the log stay true, numbers go on, and whoever reads passes over the gap.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.log import lines
from swarm.bus.log.files import locked_folder
from swarm.bus.log.parts import HEAD, REMOVED, Parts
from swarm.machine import own
from swarm.machine.atomic import sweep_temporaries, write_atomic

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD_WITHIN = 256


class Part(NamedTuple):
    """One of them.

    Attributes:
        base, end: from where to where it goes.
        begin, stop: the same for the records in it, without its first line and its last.
        records: how many that are.
        last: the number of the last.
        time_ms: when the last was added, by the time of day.
    """

    base: int
    end: int
    begin: int
    stop: int
    records: int
    last: int
    time_ms: int

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.end - self.base


def _described(fd: int, base: int) -> Part | None:
    """Return the description of a file; None if its first or last line is damaged."""
    info = os.fstat(fd)
    head = os.pread(fd, _HEAD_WITHIN, 0).partition(b"\n")[0]
    tail = os.pread(fd, lines.END_IN, max(0, info.st_size - lines.END_IN))
    first, last = lines.verify(head), lines.last_number(os.pread, fd, info.st_size)
    if first < 0 or last < first:
        return None
    end = base + info.st_size
    closing = len(tail) - tail.rfind(b"\n", 0, -1) - 1 if lines.is_closed(tail) else 0
    stop = end - closing
    return Part(base, end, base + len(head) + 1, stop, last - first, last, info.st_mtime_ns // 1_000_000)


class OldParts(Parts):
    """The older parts of one log."""

    def all(self) -> list[Part]:
        """Return the closed parts, oldest first, without those whose content is unknown."""
        return [part for base in self._list_parts() if (part := self._rolled_at(base)) is not None]

    def active(self) -> Part | None:
        """Return the active part as an old one; None if it is empty."""
        self.end()
        part = _described(self._fd, self._base)  # closed, if a kill came before it got its final name
        return part if part is not None and part.records else None

    def total(self) -> int:
        """Return how many bytes the whole log has on the disk."""
        with os.scandir(self.folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries if entry.name.endswith(".log"))

    def _rolled_at(self, base: int) -> Part | None:
        try:
            fd = self._open_part(base)
        except FileNotFoundError:
            return None
        try:
            return _described(fd, base)
        finally:
            os.close(fd)

    def set_time(self, part: Part) -> None:
        """Give a part back the time of its last record."""
        with contextlib.suppress(FileNotFoundError):
            own.utime(f"{self.folder}/{part.base:019d}.log", (part.time_ms * 1_000_000, part.time_ms * 1_000_000))

    def remove(self, parts: Sequence[Part]) -> None:
        """Delete some. First it is made durable where the log goes on: it must never begin anew at its first place."""
        newest = max(parts, key=lambda part: part.base)
        with locked_folder(self.folder, self._patience):
            if newest.end > self._removed()[0]:
                self._note(newest)
            for part in parts:
                with contextlib.suppress(FileNotFoundError):
                    own.unlink(f"{self.folder}/{part.base:019d}.log")

    def _note(self, newest: Part) -> None:
        sweep_temporaries(self.folder)
        write_atomic(f"{self.folder}/{REMOVED}", lines.seal(b"%b%d}" % (HEAD, newest.end), newest.last))
