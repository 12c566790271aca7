"""Notice in which folders something changed: by inotify, and by looking again where it does not tell.

The system has no inotify, or all of its watches are taken: Linux gives a user 128 by default, and each supervisor has
one.  A look costs a few microseconds a folder, so all of them are looked at often, and those of idle things less often.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import TYPE_CHECKING, NamedTuple

from swarm.machine import inotify

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    Mark = tuple[str, ...]

#: A folder that is not there yet is looked for this often, in seconds.
_MISSING = 2.0
_EVENTS = inotify.MODIFY | inotify.CLOSE_WRITE | inotify.MOVED_FROM | inotify.MOVED_TO | inotify.CREATE | inotify.DELETE


class Watched(NamedTuple):
    """A folder that is watched.

    Attributes:
        mark: says whose it is.
        every: without inotify it is looked at this often, in seconds.
        files: files in it that grow in place; of all others the folder's own time tells. None: any may.
    """

    mark: Mark
    every: float
    files: tuple[str, ...] | None = ()


class Folders:
    """Folders that are watched. For one thread; ``wake`` is for all."""

    def __init__(self) -> None:
        self._fd = inotify.begin()
        self._ears, self._mouth = _pipe()
        self._poll = select.poll()
        self._poll.register(self._ears, select.POLLIN)
        if self._fd >= 0:
            self._poll.register(self._fd, select.POLLIN)
        self._all: dict[str, Watched] = {}
        self._numbers: dict[int, str] = {}
        self._told_of: dict[str, int] = {}
        self._rest = _Rest()

    def close(self) -> None:
        """Watch nothing more."""
        for fd in (self._fd, self._ears, self._mouth):
            if fd >= 0:
                os.close(fd)
        self._fd = self._ears = self._mouth = -1

    def wake(self) -> None:
        """End a wait, from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._mouth, b"1")

    def watch(self, folders: Mapping[str, Watched]) -> set[Mark]:
        """Watch these folders and no others; return the marks of those that are new: look at them once."""
        for folder in self._told_of.keys() - folders.keys():
            inotify.remove(self._fd, self._forget(folder))
        new = {one.mark for folder, one in folders.items() if folder not in self._all}
        self._all = dict(folders)
        self._rest.keep(folders)
        for folder, one in folders.items():
            if folder not in self._told_of and folder not in self._rest.seen and not self._is_told_of(folder):
                self._rest.add(folder, one)
        return new

    def wait(self, seconds: float) -> set[tuple[Mark, str]]:
        """Return what changed, as marks and names, as soon as anything did, or after a time.

        An empty name stands for any.
        """
        found = dict(self._poll.poll(max(0.0, min(seconds, self._rest.left())) * 1000))
        if self._ears in found:
            with contextlib.suppress(BlockingIOError):
                os.read(self._ears, 1 << 10)
        hits = self._reports() if self._fd in found else set()
        for folder, is_new in self._rest.look():
            hits.add((self._all[folder].mark, ""))
            if is_new:
                self._rest.drop(folder)
                if not self._is_told_of(folder):
                    self._rest.add(folder, self._all[folder])
        return hits

    # --- inotify ------------------------------------------------------------------------------------

    def _is_told_of(self, folder: str) -> bool:
        """Have the kernel tell of a folder, if it can."""
        number = inotify.add(self._fd, folder, _EVENTS) if self._fd >= 0 else -1
        if number < 0:
            return False
        former = self._numbers.get(number)
        if former is not None and former != folder:  # the same folder under another name: it keeps the newer one
            del self._told_of[former]
            self._rest.add(former, self._all[former])
        self._numbers[number], self._told_of[folder] = folder, number
        return True

    def _forget(self, folder: str) -> int:
        number = self._told_of.pop(folder)
        del self._numbers[number]
        return number

    def _reports(self) -> set[tuple[Mark, str]]:
        hits: set[tuple[Mark, str]] = set()
        for number, what, name in inotify.read(self._fd):
            if what & inotify.OVERFLOW:
                hits |= {(one.mark, "") for one in self._all.values()}
            elif (folder := self._numbers.get(number)) is not None:
                hits.add((self._all[folder].mark, name))
                if what & inotify.IGNORED:  # it is gone; another one may come
                    self._forget(folder)
                    self._rest.add(folder, self._all[folder])
        return hits


class _Rest:
    """Folders of which the kernel does not tell: they are looked at again and again.

    Attributes:
        seen: what they were at the last look; None: not there.
    """

    def __init__(self) -> None:
        self.seen: dict[str, object] = {}
        self._groups: dict[float, dict[str, tuple[str, ...] | None]] = {}  # every → folder → what is looked at
        self._due: dict[float, float] = {}

    def keep(self, folders: Container[str]) -> None:
        """Look at no other folders than these any more."""
        for folder in [one for one in self.seen if one not in folders]:
            self.drop(folder)

    def add(self, folder: str, one: Watched) -> None:
        """Look at a folder from now on."""
        places = None if one.files is None else (folder, *(f"{folder}/{name}" for name in one.files))
        found = self.seen[folder] = _signature(folder, places)
        every = _MISSING if found is None else one.every
        self._groups.setdefault(every, {})[folder] = places
        self._due.setdefault(every, time.monotonic() + every)

    def drop(self, folder: str) -> None:
        """Look at a folder no more."""
        del self.seen[folder]
        for group in self._groups.values():
            group.pop(folder, None)

    def left(self) -> float:
        """Return after how many seconds to look."""
        due = [self._due[every] for every, group in self._groups.items() if group]
        return min(due, default=float("inf")) - time.monotonic()

    def look(self) -> list[tuple[str, bool]]:
        """Return the folders in which something changed since the last look, and whether each has just appeared."""
        now = time.monotonic()
        changed: list[tuple[str, bool]] = []
        for every, group in self._groups.items():
            if now < self._due[every]:
                continue
            self._due[every] = now + every
            for folder, places in group.items():
                before, found = self.seen[folder], _signature(folder, places)
                if found != before:
                    self.seen[folder] = found
                    changed.append((folder, before is None))
        return changed


def _signature(folder: str, places: tuple[str, ...] | None) -> object:
    """Return what is another value when something in a folder has changed; None where it is not there.

    Args:
        places: whose times tell; None: those of all that is in the folder.
    """
    try:
        if places is None:
            places = (folder, *(f"{folder}/{name}" for name in os.listdir(folder)))
        return [((info := os.stat(place)).st_mtime_ns, info.st_size) for place in places]
    except OSError:
        return [_stat(place) for place in places or ()] if os.path.isdir(folder) else None


def _stat(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size


def _pipe() -> tuple[int, int]:
    """Return a pipe of which no end ever waits."""
    ends = os.pipe()
    for fd in ends:
        os.set_blocking(fd, False)
    return ends
