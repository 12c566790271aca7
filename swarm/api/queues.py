"""The namespace ``swarm.queues``: lists of work that agents share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from swarm.bus.protocol import Depth
    from swarm.messages.queues import Queue


class Queues(Door):
    """Lists of work that agents share. Call it for all of them, each with how much is in it."""

    def __call__(self) -> tuple[tuple[str, Depth], ...]:
        """Return the name of every task queue, and how much is in it."""
        from swarm.messages.inboxes import bus_of
        from swarm.messages.queues import queues

        with files.os_errors("cannot look at the queues"):
            return queues(bus_of(self._world))

    def get(self, name: str) -> Queue:
        """Return a task queue for the caller; its first task creates it.

        Example:
            >>> queue = swarm.queues.get("work")                           # doctest: +SKIP
            >>> task = queue.add("port parser.py").id                   # doctest: +SKIP
            >>> queue.add("review the parser", after=[task])            # doctest: +SKIP
            >>> claim = queue.take(wait=60)                             # doctest: +SKIP
            >>> queue.done([claim.messages[0].id], "see commit 1a2b")   # doctest: +SKIP
        """
        from swarm.messages.inboxes import bus_of
        from swarm.messages.queues import Queue, worker
        from swarm.project.statedir import prepare

        def make() -> None:
            with files.os_errors(f"cannot make queue {name}"):
                prepare(self._world)

        return Queue(bus_of(self._world), name, worker(self._world.environ, self._world.acting), make)
