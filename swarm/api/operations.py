"""The namespace ``swarm.operations``: the history of operations, and interrupted ones."""

from __future__ import annotations

from typing import Any

from swarm.api.door import Door
from swarm.kit.errors import SwarmError


class Operations(Door):
    """Operations in this repository. Call it for those done, oldest first."""

    def __call__(self) -> tuple[dict[str, Any], ...]:
        """Return the operations done in this repository, oldest first."""
        return self._world.journal.history()

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of interrupted operations. Never writes, never waits."""
        return self._world.journal.unfinished()

    def describe_unfinished(self) -> tuple[str, ...]:
        """Describe unfinished operations, such as ``create of feature-x``."""
        found = []
        for operation in self._world.journal.unfinished():
            try:
                record = self._world.journal.read(operation)
            except (SwarmError, OSError):
                continue  # it has just ended
            found.append(f"{record.get('verb', '?')} of {record.get('session') or '?'}")
        return tuple(found)
