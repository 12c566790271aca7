"""The log of events of one project: ``.swarm/events/log/``.

It is a log of the bus (``bus/log``): append-only parts, a checksum on each line, any number of writers, and numbers
that go on after a restart.  What is too old goes part by part; whoever asks for it is told of the gap.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from swarm.bus.log.log import Log
from swarm.bus.log.oldparts import OldParts
from swarm.bus.wake import Wake
from swarm.eventlog.values import GAP, Happened, LogEvent, LogPage
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from swarm.bus.log.part import Line

FOLDER = "events"
#: A part is closed at this size, and all of them together are not much larger than that.
PART, MOST = 2 << 20, 32 << 20
_LONGEST_PAGE = 1000
#: A log that is not there yet is looked for this often, in seconds.
_UNTIL_MADE = 0.5
_TOO_OLD = "older events were removed: the log keeps the newest {size} MiB"
_DAMAGED = "what stood there cannot be read any more"
_ANEW = "the log was begun anew: it does not reach number {after}"


class EventLog:
    """The log of one project. Reading makes nothing. Not for several threads at once.

    Args:
        state: swarm's folder in the repository.
        part, most: sizes in bytes, at which a part is closed, and of all parts.
    """

    def __init__(self, state: Path, part: int = PART, most: int = MOST) -> None:
        self.folder = state / FOLDER / "log"
        self._part, self._most = part, most
        self._log: Log | None = None
        self._place = (0, 0)  # an event's number, and where in the log the next one begins

    def close(self) -> None:
        """Let go of the files."""
        if self._log is not None:
            self._log.close()
            self._log = None

    # --- write ------------------------------------------------------------------------------------

    def append(self, happened: Sequence[Happened]) -> int:
        """Add events; they are on the disk when this returns. Return the number of the last.

        Raises:
            OSError: not all of them were added.
        """
        log = self._opened(make=True)
        now = time.time_ns() // 1_000_000
        written = None
        for one in happened:
            opened = log.opened
            written = log.append(_line(one, now))
            if log.opened != opened:
                self._drop_old()
        if written is None:
            return log.last_number()
        log.handle().sync()  # a number that was read must never be given again
        return written.number

    def _drop_old(self) -> None:
        """Remove the oldest parts of a log that is too large."""
        parts = OldParts(os.fspath(self.folder))
        try:
            excess = parts.total() - self._most
            old = []
            for part in parts.all():
                if excess <= 0:
                    break
                old.append(part)
                excess -= part.size
            if old:
                parts.remove(old)
        finally:
            parts.close()

    # --- read -------------------------------------------------------------------------------------

    def last_number(self) -> int:
        """Return the number of the newest event; 0 without any."""
        return self._opened().last_number() if self._is_there() else 0

    def page(self, after: int = 0, limit: int = _LONGEST_PAGE) -> LogPage:
        """Return the events behind a number, oldest first. What is missing in between is told as a gap."""
        found: list[LogEvent] = []
        for event in self._read(after):
            if len(found) >= max(1, limit):
                return LogPage(tuple(found), found[-1].number, more=True)
            found.append(event)
        return LogPage(tuple(found), found[-1].number if found else after)

    def follow(self, after: int | None = None, timeout: float | None = None) -> Iterator[LogEvent]:
        """Yield the events behind a number, then each new one.

        Args:
            after: None begins with the next event.
            timeout: it ends when nothing came for so many seconds; None: never.
        """
        at = self.last_number() if after is None else after
        wake = None
        since = time.monotonic()
        while True:
            page = self.page(at)
            yield from page.events
            at = page.last
            if page.events:
                since = time.monotonic()
                continue
            left = None if timeout is None else since + timeout - time.monotonic()
            if left is not None and left <= 0:
                return
            if wake is None and self._is_there():
                wake = Wake([os.fspath(self.folder)])
                continue  # what came before it watched
            _wait(wake, left)

    def _read(self, after: int) -> Iterator[LogEvent]:
        if not self._is_there():
            if after > 0:
                yield _gap(_ANEW.format(after=after), 1, after, number=0)
            return
        log = self._opened()
        last = log.last_number()
        if after > last:
            yield _gap(_ANEW.format(after=after), last + 1, after, number=0)
            after = 0
        expected = after + 1
        for line in log.read(self._start(after)):
            if 0 <= line.number < expected:
                continue
            event = _event(line)
            if event is None:  # the next one shows how many are missing
                continue
            if event.number > expected:
                reason = _DAMAGED if self._is_kept(expected) else _TOO_OLD.format(size=self._most >> 20)
                yield _gap(reason, expected, event.number - 1)
            self._place = (event.number, line.end)
            expected = event.number + 1
            yield event

    def _start(self, after: int) -> int:
        """Return a place in the log before which no event behind a number is."""
        if self._place[0] and self._place[0] == after:
            return self._place[1]
        parts = OldParts(os.fspath(self.folder))
        try:
            closed = parts.all()
        finally:
            parts.close()
        return next((part.base for part in closed if part.last > after), closed[-1].end if closed else 0)

    def _is_kept(self, number: int) -> bool:
        """Whether the part in which an event was written is still there."""
        parts = OldParts(os.fspath(self.folder))
        try:
            oldest = next(iter(parts.all()), None) or parts.active()
        finally:
            parts.close()
        return oldest is not None and oldest.last - oldest.records < number

    def _is_there(self) -> bool:
        return os.path.lexists(self.folder / "active.log") or os.path.lexists(self.folder / "removed.head")

    def _opened(self, *, make: bool = False) -> Log:
        if self._log is None:
            if make and not self.folder.is_dir():
                for folder in (self.folder.parent, self.folder):
                    files.make_private_dir(folder)
            self._log = Log(os.fspath(self.folder), self._part)
        return self._log


def _wait(wake: Wake | None, left: float | None) -> None:
    """Wait for a new event, or a moment for the log itself."""
    if wake is None:
        time.sleep(_UNTIL_MADE if left is None else min(left, _UNTIL_MADE))
    else:
        wake.wait(wake.longest if left is None else left)


def _line(one: Happened, now: int) -> bytes:
    told = {"at": now, "kind": one.kind, "subject": one.subject, "before": one.before, "after": one.after}
    return json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _event(line: Line) -> LogEvent | None:
    """Return the event of a line; None if it is damaged, or none of ours."""
    if line.number < 0:
        return None
    try:
        told: dict[str, Any] = json.loads(line.data)
        return LogEvent(line.number, told["at"], told["kind"], told["subject"], told.get("before"), told.get("after"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _gap(reason: str, first: int, last: int, number: int | None = None) -> LogEvent:
    told = {"reason": reason, "first": first, "last": last}
    return LogEvent(last if number is None else number, time.time_ns() // 1_000_000, GAP, "", None, told)
