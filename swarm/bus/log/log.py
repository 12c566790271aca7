"""An append-only log in a folder, shared by processes that may be killed at any moment.

Adding a record: lock the file itself; see that it still is the active part; cut off what a killed
writer left behind its last newline; one write; unlock.  The sync comes after the unlocking, so that
writers at the same time share it.
"""

from __future__ import annotations

import os
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.log import lines
from swarm.bus.log.files import lock, locked_folder
from swarm.bus.log.part import Line, blocks, matching, parted, whole_lines
from swarm.bus.log.parts import Parts
from swarm.bus.log.syncing import Handle, Opening
from swarm.machine import own
from swarm.machine.atomic import sync_data, sync_folder, write_all
from swarm.machine.locks import try_lock, unlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swarm.bus.log.files import Patience

ROLL_AT = 8 << 20
#: The holder of a lock finishes within this many tries if it gets the CPU; a sleep takes ten times as long as a write.
_TRIES = 200
#: Who adds one record after the other without a sync between them asks a few times, and then sleeps so often for so
#: long: those who keep asking only hold up the one who writes, and while they sleep it writes many.
_FEW, _NAPS, _NAP = 4, 20, 0.0005
_give_way = getattr(os, "sched_yield", int)


def _lock_soon(fd: int, *, often: bool = False) -> bool:
    """Lock an open file, unless another process holds it for longer than a write; *often*: for a frequent caller."""
    if often and (_lock_within(fd, _FEW, _count) or _lock_within(fd, _NAPS, lambda: sleep(_NAP))):
        return True
    return _lock_within(fd, _TRIES, _give_way)


def _count() -> None:
    """Let a microsecond or two pass without troubling the system, which the other one needs."""
    for _ in range(60):
        pass


def _lock_within(fd: int, tries: int, pause: Callable[[], object]) -> bool:
    for _ in range(tries):
        pause()
        if try_lock(fd):
            return True
    return False


class Full(Exception):
    """The record would go beyond the bound that the caller gave."""


class Written(NamedTuple):
    """Where a record went."""

    at: int
    end: int
    number: int


class Log(Parts):
    """One log. Not for several threads at once; for any number of processes."""

    def __init__(self, folder: str, roll_at: int = ROLL_AT, patience: Patience = None) -> None:
        super().__init__(folder, patience)
        self._roll_at = roll_at
        self._opening = Opening(0, 0)
        self._unsynced = 0  # consecutive records without a sync

    def append(self, record: bytes, most_number: int = 1 << 62, most_end: int = 1 << 62) -> Written:
        """Add one JSON object; whole, or not at all. A sync of ``handle`` makes it durable.

        Raises:
            Full: it would get a higher number, or end later, than allowed; nothing was added.
            OSError: nothing was added.
        """
        while True:
            size = self._lock_active()
            fd = self._fd
            try:
                if size != self._size and not self._learn(size):
                    self._roll()  # the closing process was killed before that, or has done it
                    continue
                size = self._size
                number = self._number + 1
                line = lines.seal(record, number)
                after = size + len(line)
                if number > most_number or self._base + after > most_end:
                    raise Full
                if size <= self._head or after > self._roll_at:
                    if size > self._head:
                        self._add(fd, lines.seal(lines.CLOSED, self._number), size)
                        self._roll()
                        continue
                    sync_folder(self.folder)  # once for each part: its name is now as durable as what will be in it
                self._add(fd, line, size)
                self._size = after
                self._number = number
                self._unsynced += 1
                break
            finally:
                unlock(fd)
        if self._opening.number != self.opened or self._opening.failed:
            self._opening = Opening(self.opened, size)
        return Written(self._base + size, self._base + after, number)

    def roll(self) -> None:
        """Let the next record begin another part, unless this one is empty."""
        size = self._lock_active()
        try:
            if size != self._size and not self._learn(size):
                self._roll()
            elif self._size > self._head:
                self._add(self._fd, lines.seal(lines.CLOSED, self._number), self._size)
                self._roll()
        finally:
            unlock(self._fd)

    def close_for_ever(self) -> None:
        """Close the log for every writer, also for those that have the file open."""
        size = self._lock_active()
        try:
            if size == self._size or self._learn(size):
                self._add(self._fd, lines.seal(lines.CLOSED, self._number), self._size)
        finally:
            unlock(self._fd)
            self.close()

    def _add(self, fd: int, line: bytes, size: int) -> None:
        """Write a line at the end, whole or not at all."""
        self._size = -1  # look again should this fail
        try:
            written = os.write(fd, line)
            if written != len(line):  # the next call says why: the disk is full, or it was a signal
                write_all(fd, line[written:])
        except OSError:
            os.ftruncate(fd, size)
            raise

    def handle(self) -> Handle:
        """Return the sync of the part last written to; it blocks no other writer."""
        self._unsynced = 0
        if self._opening.number != self.opened:
            self._opening = Opening(self.opened, self.whole_end() - self._base)  # it added nothing yet
        elif self._opening.failed:
            self._write_again()
        return Handle(os.dup(self._fd), self._opening)

    def _write_again(self) -> None:
        """Rewrite all bytes that this process added: after a failed sync their state on the disk is unknown."""
        old = self._opening
        fd = self._open_active(os.O_RDWR)
        if fd >= 0:  # else it was rolled just now, and the caller gets the failure again
            try:
                end = self.whole_end() - self._base
                os.pwrite(fd, os.pread(fd, end - old.at, old.at), old.at)
            finally:
                os.close(fd)
            self._opening = Opening(old.number, old.at)

    def sync(self, at: int) -> tuple[int, int]:
        """Make durable the part that holds a place; return from where to where the log is durable then."""
        _, base, fd = self._part_at(at)
        try:
            size = os.fstat(fd).st_size
            sync_data(fd)
        finally:
            os.close(fd)
        return base, base + size

    def behind_last(self, end: int) -> int:
        """Return the same end of the log, or that of the part before if the active one has no record yet.

        With that part on the disk, closed as it is, the next one begins at the same place whatever is lost of it.
        """
        return self._base if end <= self._base + self._head else end

    def rewrite(self, line: Line) -> bool:
        """Write a record again over itself, and sync: when an earlier sync failed nothing is known of it.

        False: it is not there any longer, and nothing was written.
        """
        _, base, fd = self._part_at(line.at, os.O_RDWR)
        try:
            place = line.at - base
            if place < 0 or os.pread(fd, len(line.data) + 1, place) != line.data + b"\n":
                return False  # its part was removed just now, for being old
            os.pwrite(fd, line.data + b"\n", place)
            sync_data(fd)
        finally:
            os.close(fd)
        return True

    def _lock_active(self) -> int:
        """Lock the active part and return its size."""
        while True:
            if self._fd < 0 or self._looks:
                self.close()
                self._open()
            fd = self._fd
            if not try_lock(fd) and not _lock_soon(fd, often=self._unsynced > 1):
                lock(fd, self.path, self._patience)
            try:
                if monotonic() < self._sure_until or self._is_active():
                    return os.lseek(fd, 0, os.SEEK_END)
            except BaseException:
                unlock(fd)
                raise
            unlock(fd)
            self.close()

    def _learn(self, size: int) -> bool:
        """Find out the number of the last record, after cutting off a torn end; False when the part is closed."""
        number, end = lines.last_line(os.pread, self._fd, size)
        if number < 0:
            whole = number = 0
            for line in whole_lines(self._fd, 0, 0):
                whole = line.end
                number = line.number if line.number >= 0 else number + 1
            if whole < size:
                os.ftruncate(self._fd, whole)
            size = whole
            end = os.pread(self._fd, lines.END_IN, max(0, size - lines.END_IN))
        self._size, self._number = size, number
        return not lines.is_closed(end[-lines.END_IN :])

    def _roll(self) -> None:
        """Give the active part, closed and locked by us, its final name, unless it has it."""
        with locked_folder(self.folder, self._patience):
            if self._is_active():
                own.rename(self.path, f"{self.folder}/{self._base:019d}.log")
        self._sure_until = 0.0

    def is_empty(self) -> bool:
        """Whether no record was ever added."""
        return self.end() <= self._head and not self._base

    def last_number(self) -> int:
        """Return the number of the last whole record, or 0."""
        size = self.whole_end() - self._base
        if size == self._size:
            return self._number
        if (number := lines.last_number(os.pread, self._fd, size)) >= 0:
            return number
        number = 0
        for line in whole_lines(self._fd, 0, 0):
            number = line.number if line.number >= 0 else number + 1
        return number

    def read(self, start: int = 0) -> Iterator[Line]:
        """Give every record from *start* on, and lines that do not verify; no headers, no torn end."""
        position = start
        while True:
            rolled, base, fd = self._part_at(position)
            again = False
            try:
                position = max(position, base)
                for line in whole_lines(fd, base, position - base):
                    position = line.end
                    if line.number >= 0:
                        if not line.data.startswith(b'{"log":'):
                            yield line
                        continue
                    seen = self._second_look(fd, base, line, rolled=rolled)
                    yield from parted(seen)
                    if seen != line:  # it was pieced together from several: go on behind the first of them
                        position = seen.end if seen else line.at
                        again = True
                        break
            finally:
                os.close(fd)
            if again:
                continue
            if rolled:  # nothing is added to it any more, and all of it has been read
                position = max(self._next_base(base), base + 1)
            elif self.end() >= 0 and base == self._base:  # asked first: that finds out which part is the active one
                return

    def one(self, at: int, size: int) -> Line:
        """Return the line at a place."""
        _, base, fd = self._part_at(at)
        try:
            data = os.pread(fd, size, at - base)[:-1]
        finally:
            os.close(fd)
        return Line(at, at + size, lines.verify(data), data)

    def search(self, needle: bytes, start: int, stop: int) -> Iterator[Line]:
        """Give the lines that begin between two places and hold *needle*."""
        for at, data in self.blocks(start, stop):
            for line in matching(at, data, needle):
                if line.at >= stop:
                    return
                yield line

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes between two places, perhaps somewhat more, in unverified blocks of many lines."""
        position = start
        whole = self.whole_end()  # behind it is nothing yet, or something that may still be cut off
        while position < stop:
            rolled, base, fd = self._part_at(position)
            try:
                position = max(position, base)
                for at, data in blocks(fd, base, position - base, whole - base):
                    yield at, data
                    position = at + len(data)
                    if position >= stop:
                        return
            finally:
                os.close(fd)
            if not rolled:
                return
            position = max(self._next_base(base), base + 1)

    def tail(self, limit: int) -> list[Line]:
        """Return the last records, oldest first, without reading much more than them."""
        self.end()
        begins = [self._base, *reversed(self._list_parts()), 0]
        found: list[Line] = []
        for begin in begins:
            found = [line for line in self.read(begin) if line.number >= 0][-limit:]
            if len(found) >= limit:
                break
        return found

    def _second_look(self, fd: int, base: int, line: Line, *, rolled: bool) -> Line | None:
        """Read a line again that did not verify: a writer may have been mending the end just then."""
        if rolled:
            return line
        lock(fd, self.path, self._patience)
        try:
            return next(whole_lines(fd, base, line.at - base), None)
        finally:
            unlock(fd)
