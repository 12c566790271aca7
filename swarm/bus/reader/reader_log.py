"""The reader log of a box: every action of its readers, and a snapshot of their sum.

reader.lock     held while something is decided; made with the box and never deleted
reader/         the log
reader.state    the sum up to some entry: only saves reading, and may be lost
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from swarm.bus.errors import InboxNotFound
from swarm.bus.log import lines
from swarm.bus.log.files import lock_in_turn
from swarm.bus.log.log import Log
from swarm.bus.reader.state import State, dump, snapshot
from swarm.machine import own
from swarm.machine.atomic import sweep_temporaries, write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

    from swarm.bus.log.files import Patience
    from swarm.bus.log.syncing import Handle

_SNAPSHOT_EVERY = 128


def _places_in(entry: dict[str, Any]) -> tuple[list[Any], ...]:
    """Return the places of the messages that an entry is about; an id may be any word that stands in others, too."""
    return (*entry.get("m", ()), *entry.get("also", ()))


class ReaderLog:
    """The reader log of one box; ``with reader_log:`` decides, ``look`` only looks."""

    def __init__(self, folder: str, address: str, patience: Patience = None) -> None:
        self._folder = folder
        self._patience = patience
        self._address = address
        self._state = State()
        self.identity = b""  # of the box: another one may take its path
        self._fd = -1
        self._unsaved = 0
        self.saved = 0  # snapshots that were written
        self.log = Log(folder + "/reader", patience=patience)

    def close(self) -> None:
        """Let go of the files."""
        self.log.close()

    def __enter__(self) -> State:
        """Hold the readers' lock; no other process changes the state meanwhile."""
        fd = self._open_lock()
        turn = -1
        try:
            turn = own.open(self._folder + "/reader.turn", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            lock_in_turn(fd, turn, self._folder + "/reader.lock", self._patience)
            state = self._current(fd)
        except BaseException:
            os.close(fd)
            raise
        finally:
            if turn >= 0:
                os.close(turn)
        self._fd = fd
        return state

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._unsaved >= _SNAPSHOT_EVERY:
                self._save()
        finally:
            os.close(self._fd)
            self._fd = -1

    def look(self) -> State:
        """Return the state of this moment; it may have changed when this returns."""
        fd = self._open_lock()
        try:
            return self._current(fd)
        finally:
            os.close(fd)

    def add(self, *entries: dict[str, Any]) -> None:
        """Append entries under the lock and apply them. ``handle`` returns the handle to sync afterwards."""
        for entry in entries:
            written = self.log.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode())
            self._state.apply(entry)
            self._state.upto = written.end
        self._unsaved += len(entries)

    def handle(self) -> Handle:
        """Return a handle that syncs the added entries, for use outside the lock."""
        return self.log.handle()

    def about(self, message_id: str) -> Iterator[dict[str, Any]]:
        """Give the entries that name a message, oldest first."""
        for line in self.log.search(f'"{message_id}"'.encode(), 0, self.log.end()):
            entry = json.loads(line.data) if line.number >= 0 else {}
            if entry.get("id") == message_id or any(place[3] == message_id for place in _places_in(entry)):
                yield entry

    def _open_lock(self) -> int:
        try:
            return own.open(self._folder + "/reader.lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise InboxNotFound(f"there is no {self._address.replace('.', ' ', 1)}") from None

    def _current(self, fd: int) -> State:
        box = os.pread(fd, 64, 0)
        if box != self.identity:  # another one of the same name since we last looked
            self.log.close()
            self._state = snapshot(self._folder)
            self._unsaved = 0
            self.identity = box
        state = self._state
        if self.log.end() > state.upto:
            for line in self.log.read(state.upto):
                if line.number >= 0:  # one that is damaged has lost its effect, and only its own
                    state.apply(json.loads(line.data))
                    self._unsaved += 1
                state.upto = line.end
        return state

    def _save(self) -> None:
        """Write a snapshot; a disk without room for it is no reason to stop."""
        path = self._folder + "/reader.state"
        try:
            # First the log: a snapshot must not know of entries that a power cut can take away.
            self.log.handle().sync()
            data = lines.seal(json.dumps(dump(self._state), separators=(",", ":")).encode(), 0)
            sweep_temporaries(self._folder, "reader.state")
            write_atomic(path, data, durable=False)
            self._unsaved = 0
            self.saved += 1
        except OSError:
            self._unsaved //= 2  # not again at once
