"""Hand the changes of the model to any number of readers.

The last changes are kept in a ring, once for all readers.  A reader says which one it saw last; one that fell behind
the ring is told ``lost``, and never gets what comes after a hole.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from swarm.live.values import LOST, Change, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from swarm.eventlog.values import Happened

#: So many changes are kept.
RING = 2000


class Feed:
    """The newest snapshot of a model, and its last changes. For any number of threads.

    Args:
        epoch: which model it is.
        ring: how many changes are kept.
    """

    def __init__(self, epoch: str, ring: int = RING) -> None:
        self.epoch = epoch
        self._news = threading.Condition()
        self._ring: deque[Change] = deque(maxlen=ring)
        self._snapshot = Snapshot(epoch, 0, 0)
        self._calls: set[Callable[[], None]] = set()
        self._closed = False
        self._bug: Exception | None = None

    # --- the model's side ---------------------------------------------------------------------------

    def publish(self, happened: Sequence[Happened], **state: Any) -> None:
        """Add changes, and make the state behind them the newest one.

        Args:
            state: fields of the snapshot that are others now.
        """
        now = time.time_ns() // 1_000_000
        with self._news:
            revision = self._snapshot.revision
            for one in happened:
                revision += 1
                self._ring.append(Change(revision, one.kind, one.subject, one.before, one.after, now, self.epoch))
            self._snapshot = self._snapshot._replace(revision=revision, at_ms=now, **state)
            self._news.notify_all()
            calls = tuple(self._calls)
        for call in calls:
            call()

    def close(self, bug: Exception | None = None) -> None:
        """Let every reader come to its end.

        Args:
            bug: what ended the model; readers get it.
        """
        with self._news:
            self._closed = True
            self._bug = self._bug or bug
            self._news.notify_all()
            calls = tuple(self._calls)
        for call in calls:
            call()

    # --- the readers' side --------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether nothing comes any more."""
        return self._closed

    def snapshot(self) -> Snapshot:
        """Return the newest state."""
        with self._news:
            return self._snapshot

    def since(self, after: int | str) -> tuple[Change, ...]:
        """Return the changes behind one, without waiting; ``lost`` alone when they are not all there."""
        with self._news:
            return self._since(after)

    def wait(self, after: int | str, timeout: float | None) -> tuple[Change, ...]:
        """Return the changes behind one as soon as there is any; none when the time is over or the model is closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._news:
            while True:
                found = self._since(after)
                left = None if deadline is None else deadline - time.monotonic()
                if self._bug is not None and not found:
                    raise self._bug
                if found or self._closed or (left is not None and left <= 0):
                    return found
                self._news.wait(left)

    def changes(self, after: int | str, timeout: float | None) -> Iterator[Change]:
        """Yield changes until none comes for a time, the model is closed, or this reader is lost."""
        while found := self.wait(after, timeout):
            for one in found:
                yield one
                if one.kind == LOST:
                    return
            after = found[-1].revision

    def call(self, back: Callable[[], None]) -> Callable[[], None]:
        """Have a function called at every change, in the model's thread; return what ends that."""
        with self._news:
            self._calls.add(back)

        def end() -> None:
            with self._news:
                self._calls.discard(back)

        return end

    def _since(self, after: int | str) -> tuple[Change, ...]:
        newest = self._snapshot.revision
        number = _number(after, self.epoch)
        oldest = newest - len(self._ring)
        if number is None or not oldest <= number <= newest:
            told: Mapping[str, Any] = {"revision": newest}
            return (Change(newest, LOST, "", None, told, self._snapshot.at_ms, self.epoch),)
        return tuple(islice(self._ring, number - oldest, None)) if number < newest else ()


def _number(after: int | str, epoch: str) -> int | None:
    """Return the revision behind which to read; None if it is one of another model."""
    if isinstance(after, int):
        return after
    of, _, number = after.rpartition("-")
    return int(number) if of == epoch and number.isascii() and number.isdecimal() and len(number) < 19 else None
