"""Too much of something: who names many wrong tokens is not listened to for a while; reports have a rate."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

#: So many wrong tokens a source may name in so many seconds.
MOST, SECONDS = 20, 60.0
_MOST_SOURCES = 1000


class Throttle:
    """Counts wrong tokens by where they come from."""

    def __init__(self) -> None:
        self._wrong: dict[Hashable, deque[float]] = {}

    @property
    def is_calm(self) -> bool:
        """Whether nobody named a wrong token of late."""
        return not self._wrong

    def note(self, source: Hashable) -> None:
        """Count a wrong token."""
        self._forget()
        while len(self._wrong) >= _MOST_SOURCES:
            del self._wrong[next(iter(self._wrong))]
        self._wrong.setdefault(source, deque(maxlen=MOST)).append(time.monotonic())

    def refuses(self, source: Hashable) -> bool:
        """Whether a source has to wait, whatever token it names now."""
        self._forget()
        return len(self._wrong.get(source, ())) >= MOST

    def _forget(self) -> None:
        before = time.monotonic() - SECONDS
        for times in self._wrong.values():
            while times and times[0] < before:
                times.popleft()
        self._wrong = {source: times for source, times in self._wrong.items() if times}


class Rate:
    """Counts what happens within a minute."""

    def __init__(self, most: int) -> None:
        self._times: deque[float] = deque(maxlen=most)

    def allows(self) -> bool:
        """Whether one more is allowed; it is counted then."""
        now = time.monotonic()
        if len(self._times) == self._times.maxlen and now - self._times[0] < SECONDS:
            return False
        self._times.append(now)
        return True
