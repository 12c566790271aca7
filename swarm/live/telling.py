"""Tell others what the model has seen, without holding up its readers."""

from __future__ import annotations

import contextlib
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.live.values import Snapshot


class Looked(NamedTuple):
    """One look, for who shows states in tmux and calls the user.

    Attributes:
        began_ns: when it began: every change before that is in it.
        sessions: the agents of which were looked at.
        changed: something is different since the look before.
    """

    snapshot: Snapshot
    table: Mapping[tuple[str, str], Mapping[str, Any]]
    began_ns: int
    sessions: frozenset[str]
    changed: bool


class Tell(Protocol):
    """Who tells others what was seen."""

    def __call__(self, looked: Looked) -> None:
        """Tell what one look has seen."""

    def close(self) -> None:
        """The model has ended."""


class Telling:
    """A thread that tells one look after the other.

    Args:
        tell: does it; used by no other thread.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._looks: SimpleQueue[Looked | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="swarm-live-tell", daemon=True)
        self._thread.start()

    def tell(self, looked: Looked) -> None:
        """Have a look told soon."""
        self._looks.put(looked)

    def close(self) -> None:
        """Tell what is left, and end."""
        self._looks.put(None)
        self._thread.join()

    def _run(self) -> None:
        for looked in iter(self._looks.get, None):
            with contextlib.suppress(SwarmError, OSError):  # the next look does it
                self._tell(looked)
        with contextlib.suppress(SwarmError, OSError):
            self._tell.close()
