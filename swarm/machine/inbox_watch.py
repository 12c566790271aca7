"""Notice that something arrived in an agent's inbox.

inotify saves time, nothing more: what counts is how long the logs are, and that is looked at every
two seconds in any case.
"""

from __future__ import annotations

import os

from swarm.machine import inotify

SCAN_EVERY = 2.0
_LANES = ("interrupt", "high", "normal", "low")
_DROP = "drop"
_MADE = "reader.lock"
_EVENTS = inotify.MODIFY | inotify.MOVED_TO | inotify.CREATE
#: A log that nothing was added to yet has one line, its head.
_HEAD = 100


class Inbox:
    """One inbox folder.

    Args:
        folder: it may not be there yet; empty: there is none.
        also: further folders whose changes shall wake.
    """

    def __init__(self, folder: str, *also: str) -> None:
        self._folder = folder
        self._also = also
        self._fd = -1
        self._watched: dict[str, int] = {}

    def mark(self) -> list[int]:
        """Return numbers that change with every message that comes."""
        if not self._folder:
            return []
        found: list[int] = []
        for lane in _LANES:
            info = _stat(f"{self._folder}/{lane}/active.log")
            found += [info.st_ino, info.st_size] if info else [0, 0]
        drop = _stat(f"{self._folder}/{_DROP}")
        # A file that was empty at one look and written at the next leaves its folder's time as it was.
        return [*found, drop.st_mtime_ns if drop else 0, len(dropped(self._folder))]

    def is_made(self) -> bool:
        """Whether the engine has finished making it: the file that makes it count comes last."""
        return _stat(f"{self._folder}/{_MADE}") is not None

    def is_fresh(self) -> bool:
        """Whether nothing was ever sent here, as far as one look tells; a cheap way not to ask the engine."""
        return not dropped(self._folder) and all(_is_bare(f"{self._folder}/{lane}") for lane in _LANES)

    def watch(self) -> tuple[int, ...]:
        """Return the descriptors to wait for; also start watching folders that have appeared since."""
        folders = [f"{self._folder}/{name}" for name in (*_LANES, _DROP)] if self._folder else []
        for folder in (*folders, *self._also):
            info = _stat(folder)
            if info is not None and self._watched.get(folder) != info.st_ino and self._add(folder):
                self._watched[folder] = info.st_ino
        return (self._fd,) if self._fd >= 0 else ()

    def drain(self) -> None:
        """Drop all pending reports, also an overflow: each only means "look"."""
        if self._fd >= 0:
            inotify.drain(self._fd)

    def close(self) -> None:
        """Watch no more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._watched.clear()

    def _add(self, folder: str) -> bool:
        if self._fd < 0:
            self._fd = inotify.begin()
        return self._fd >= 0 and inotify.add(self._fd, folder, _EVENTS) >= 0


def dropped(folder: str) -> list[str]:
    """Return the finished files that foreign programs have put into an inbox's drop folder.

    The engine takes in these, and these count as unread: no hidden ones, no ``.tmp`` or ``.part``, no empty ones.
    """
    try:
        with os.scandir(f"{folder}/{_DROP}") as entries:
            return sorted(entry.name for entry in entries if _is_finished(entry))
    except OSError:
        return []


def _is_finished(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name.endswith((".tmp", ".part")):
        return False
    try:
        return not entry.is_file(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_size > 0
    except FileNotFoundError:
        return False


def up_ms() -> int:
    """Return milliseconds since this boot, asleep or awake."""
    import time

    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


def _is_bare(lane: str) -> bool:
    try:
        with os.scandir(lane) as entries:
            return all(
                entry.name == "active.log" and entry.is_file() and entry.stat().st_size <= _HEAD for entry in entries
            )
    except FileNotFoundError:
        return True
    except OSError:  # the engine reports the problem
        return False


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
