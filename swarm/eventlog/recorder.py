"""Write into the log what changed, whoever sees it first, once.

What the log says last of each thing is a table, which is kept beside the log and brought up to date from the log
itself.  Whoever has looked compares under a lock: a process that was killed in between neither loses nor repeats.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from swarm.bus.log.files import lock
from swarm.eventlog import changes
from swarm.eventlog.log import FOLDER, EventLog
from swarm.eventlog.values import GAP, Happened
from swarm.kit import files
from swarm.machine import locks, own, records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from swarm.eventlog.changes import Fields, Key

#: What the log tells of each thing.
_FIELDS = {
    changes.AGENT: ("role", "program", "branch", "state", "detail", "head"),
    changes.SESSION: ("base_ref", "kind", "parent", "pod", "workflow"),
    changes.APPROVAL: ("session", "agent", "tool", "summary"),
    changes.OPERATION: ("verb", "session"),
    changes.TASK: ("state", "agent", "program", "place"),
}
#: A task that is over was told to be; that it is looked at no more is no event.
_FORGOTTEN = f"{changes.TASK}.removed"
_SEEN, _LOCK, _WATCHERS = "seen.json", "recorder.lock", "watchers.lock"
_LIMIT = 64 << 20
#: After so many events the table is kept anew.
_KEPT_EVERY = 200
_PATIENCE = 5.0
_NOBODY = "nobody watched the project: what began and ended in between is not told"


class Recorder:
    """Whoever writes into the log of a project what it saw. Not for several threads at once."""

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER
        self._log = EventLog(state)
        self._seen: dict[Key, Fields] = {}
        self._at = self._kept = -1
        self._watch = -1

    def record(self, table: Mapping[Key, Fields], things: Collection[str] = changes.THINGS) -> None:
        """Write down what changed since anybody last wrote.

        Args:
            table: what there is now, as far as it was looked at.
            things: all of these kinds were looked at: what is not in the table is gone.

        Raises:
            OSError, Locked: it is not written, or only in part; the next call goes on from there.
        """
        now = {key: {name: fields[name] for name in _FIELDS[key[0]] if name in fields} for key, fields in table.items()}
        with self._locked():
            self._catch_up()
            before = {key: fields for key, fields in self._seen.items() if key[0] in things}
            found = changes.between(before, now)
            happened = [one for one in found if _counts(one)]
            if happened:
                self._append(happened)
            for one in found:
                if one.kind == _FORGOTTEN:
                    changes.apply(self._seen, one.kind, one.subject, None)
            if self._at - self._kept >= _KEPT_EVERY:
                self._keep()

    def known(self, thing: str) -> dict[str, Fields]:
        """Return what the log says last of each thing of a kind, by its name.

        Raises:
            OSError, Locked
        """
        with self._locked():
            self._catch_up()
            return {subject: fields for (kind, subject), fields in self._seen.items() if kind == thing}

    # --- who watches --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Watch from now on; what nobody watched before is declared as a gap."""
        with self._locked():
            path = os.fspath(self._folder / _WATCHERS)
            fd = own.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            alone = locks.try_lock(fd)
            info = os.fstat(fd)
            if alone and info.st_size and self._log.last_number():
                now = time.time_ns() // 1_000_000
                told = {"reason": _NOBODY, "from_ms": info.st_mtime_ns // 1_000_000, "until_ms": now}
                self._log.append([Happened(GAP, "", None, told)])
            if not info.st_size:
                os.write(fd, b"1")
            locks.try_lock(fd, shared=True)
            self._watch = fd
            self.go_on()

    def go_on(self) -> None:
        """Say that one still watches: a later gap begins here."""
        if self._watch >= 0:
            os.utime(self._watch)

    def close(self) -> None:
        """Watch no more."""
        if self._watch >= 0:
            try:
                with self._locked():
                    self._catch_up()
                    self._keep()
                    self.go_on()
            finally:
                os.close(self._watch)
                self._watch = -1
        self._log.close()

    # --- the table ----------------------------------------------------------------------------------

    def _append(self, happened: list[Happened]) -> None:
        """Write events, and bring the table up to them."""
        try:
            last = self._log.append(happened)
        except OSError:
            self._at = -1  # some may be there: read again
            raise
        for one in happened:
            changes.apply(self._seen, one.kind, one.subject, one.after)
        self._at = last

    def _catch_up(self) -> None:
        """Bring the table up to what the log says by now, whoever wrote it."""
        last = self._log.last_number()
        if self._at < 0:
            self._seen, self._at = self._read()
            self._kept = self._at
        if self._at > last:  # another log is in its place
            self._seen, self._at = {}, 0
        while self._at < last:
            page = self._log.page(self._at)
            for event in page.events:
                changes.apply(self._seen, event.kind, event.subject, event.after)
            self._at = max(page.last, self._at + 1)

    def _read(self) -> tuple[dict[Key, Fields], int]:
        try:
            kept = records.read_object(str(self._folder / _SEEN), _LIMIT)
            return {(thing, subject): fields for thing, subject, fields in kept["table"]}, int(kept["at"])
        except (OSError, ValueError, KeyError, TypeError):  # the log has it all
            return {}, 0

    def _keep(self) -> None:
        table = [[*key, fields] for key, fields in self._seen.items()]
        data = json.dumps({"schema": 1, "at": self._at, "table": table}, separators=(",", ":")).encode("ascii")
        files.write_atomic(self._folder / _SEEN, data, durable=False)
        self._kept = self._at

    @contextmanager
    def _locked(self) -> Iterator[None]:
        files.make_private_dir(self._folder)
        path = os.fspath(self._folder / _LOCK)
        fd = own.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            lock(fd, path, lambda: _PATIENCE)
            yield
        finally:
            os.close(fd)


def _counts(one: Happened) -> bool:
    """Whether a change goes into the log: a new state, or another reason to wait; not each step of the work."""
    if one.kind == _FORGOTTEN:
        return False
    if one.kind != "agent.state" or one.before is None or one.after is None:
        return True
    return one.before.get("state") != one.after.get("state") or one.after.get("state") == "waiting"
