"""Remove attachments without a message, and remains of interrupted copies.

    read all boxes ─► sync ─► lock out who attaches and who sends attachments ─► read what came since ─► delete

A message that is still in a file of some box refers to what it names, whatever became of it: waiting, in somebody's
hands, dead, acknowledged, saved with an agent that was cleaned up.  Whoever sends one holds the attachments' lock,
shared with others, from seeing that they are there until the message is (``blobs.in_use``); whoever moves a box does
so below it, too.  So no clock decides: the age of an attachment only spares those who have attached and not yet sent
from doing it again.

Killed at any point, it has deleted some that nothing refers to, and the next one deletes the rest.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from swarm.bus.box import identity_of
from swarm.bus.log.files import locked_folder
from swarm.bus.log.log import Log
from swarm.bus.protocol import PrunedAttachments
from swarm.bus.wire import PRIORITIES
from swarm.machine import atomic, locks, own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from swarm.bus.log.files import Patience
    from swarm.bus.protocol import Keep

    #: Where else boxes lie that may come back.
    Saved = Callable[[], Iterable[str]]
    #: Folder of a box → the parts of its lanes to be passed over: (lane, from, to).
    Without = Mapping[str, Sequence[tuple[int, int, int]]]

#: A message's name of an attachment; foreign programs may write spaces there.
_NAMED = re.compile(rb'"sha256"\s*:\s*"([0-9a-f]{64})"')
_COPY = re.compile(r"[0-9a-f]{64}")
#: The time of the last unrequested sweep; this interval is enough.
_LOOKED = ".looked"
_EVERY = 86_400


class Sweep:
    """One look at the attachments below the folder of a bus."""

    def __init__(self, root: str, saved: Saved, patience: Patience = None) -> None:
        self._folder = f"{root}/blobs"
        self._patience = patience
        self._boxes = _Boxes(root, saved)

    def is_due(self) -> bool:
        """Whether a periodic sweep is due; the next caller gets False."""
        path = f"{self._folder}/{_LOOKED}"
        try:
            if abs(time.time() - os.stat(path).st_mtime) < _EVERY:
                return False
        except FileNotFoundError:
            if not os.path.isdir(self._folder):
                return False
        os.close(own.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        own.utime(path)
        return True

    def plan(self, keep: Keep, now_ms: int, without: Without) -> PrunedAttachments:
        """Return the files that ``remove`` would delete, once these parts of boxes are gone."""
        old = self._old(now_ms - keep.least_ms)
        if old:
            self._boxes.read(without)
        return _sum(size for name, size in old.items() if name not in self._boxes.named)

    def remove(self, keep: Keep, now_ms: int) -> PrunedAttachments:
        """Remove every attachment to which no message refers."""
        before = now_ms - keep.least_ms
        self._remove_halves(before)
        old = self._old(before)
        if old:
            self._boxes.read()
        if old.keys() <= self._boxes.named:
            return PrunedAttachments(0, 0)
        from pathlib import Path

        from swarm.kit import files

        # Sync the removals of messages first, or a power cut could bring them back without their attachments.
        files.sync_filesystem(Path(self._folder))
        with locked_folder(self._folder, self._patience):
            self._boxes.read()
            # Check again: a process may have attached the same file since.
            unused = {name: size for name, size in self._old(before).items() if name not in self._boxes.named}
            for name in unused:
                own.unlink(f"{self._folder}/{name}")
        return _sum(unused.values())

    def _old(self, before_ms: int) -> dict[str, int]:
        """Return the attachments from before a time of day, with their sizes."""
        return {entry.name: size for entry, size in self._files(_COPY.fullmatch, before_ms)}

    def _files(self, wanted: Callable[[str], object], before_ms: int) -> Iterator[tuple[os.DirEntry[str], int]]:
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for entry in entries:
            if wanted(entry.name):
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if info.st_mtime_ns // 1_000_000 <= before_ms:
                    yield entry, info.st_size

    def _remove_halves(self, before_ms: int) -> None:
        """Remove unfinished copies; a process that still writes one holds its lock."""
        for entry, _ in self._files(atomic.is_temporary, before_ms):
            try:
                fd = own.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                if locks.try_lock(fd):
                    own.unlink(entry.path)
            except FileNotFoundError:
                continue
            finally:
                os.close(fd)


class _Boxes:
    """The attachments that messages in all boxes name; a second read continues after the first."""

    def __init__(self, root: str, saved: Saved) -> None:
        self._root = root
        self._saved = saved
        self._read: dict[tuple[str, bytes], int] = {}
        self.named: set[str] = set()

    def read(self, without: Without | None = None) -> None:
        """Read all boxes as they are now.

        Raises:
            OSError: something cannot be read, so nothing is known.
        """
        saved = (folder for folder in self._saved() if os.path.isfile(f"{folder}/reader.lock"))
        for folder in (*self._live(), *saved):
            try:
                self._read_box(folder, (without or {}).get(folder, ()))
            except FileNotFoundError:
                if os.path.isdir(folder):
                    raise
                # Removed meanwhile, or moved: then it is found at its new place, at the latest below the lock.

    def _live(self) -> Iterator[str]:
        """Yield the folders of all boxes, judged by their form alone."""
        for kind in _folders(self._root):
            for box in _folders(kind):
                if any(os.path.isdir(f"{box}/{lane}") for lane in PRIORITIES):
                    yield box

    def _read_box(self, folder: str, without: Sequence[tuple[int, int, int]]) -> None:
        try:
            box = identity_of(f"{folder}/reader.lock")
        except FileNotFoundError:
            box = b""
        for number, lane in enumerate(PRIORITIES):
            spans = sorted((begin, end) for other, begin, end in without if other == number)
            self._read_lane(f"{folder}/{lane}", box, spans)
        for name in ("drop", "bad"):
            for path in _files_in(f"{folder}/{name}"):
                try:
                    with open(path, "rb", opener=_opener) as file:
                        self._note(file.read())
                except FileNotFoundError:
                    continue  # taken in by a process that then sends it, or has sent it

    def _read_lane(self, folder: str, box: bytes, without: Iterable[tuple[int, int]]) -> None:
        if not os.path.isdir(folder):
            return
        log = Log(folder)
        try:
            position = self._read.get((folder, box), 0) if box else 0
            end = log.whole_end()
            for begin, behind in (*without, (end, end)):
                for _, data in log.blocks(position, begin) if position < begin else ():
                    self._note(data)
                position = max(position, behind)
            self._read[folder, box] = end
        finally:
            log.close()

    def _note(self, data: bytes) -> None:
        self.named.update(name.decode() for name in _NAMED.findall(data))


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [one.path for one in entries if one.name[0] != "." and one.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _files_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [one.path for one in entries if one.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _opener(path: str, flags: int) -> int:
    return own.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _sum(sizes: Iterable[int]) -> PrunedAttachments:
    all_of_them = list(sizes)
    return PrunedAttachments(len(all_of_them), sum(all_of_them))
