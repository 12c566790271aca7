"""The namespace ``swarm.salvage``: saved work of removed worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.api.sets import check_age
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.worktrees.reports import SalvageEntry


class Salvage(Door):
    """Saved work, which ``swarm.restore`` brings back. Call it for the list, newest first."""

    def __call__(self, session: str | None = None, *, dropped: bool = False) -> tuple[SalvageEntry, ...]:
        """Return saved work, newest first. Never writes, never waits.

        Args:
            session: only of this one, or of one agent; see ``get``.
            dropped: instead return dropped work that can still be restored.
        """
        from swarm.worktrees.saved import salvage

        with files.os_errors("cannot list the salvage"):
            if session is None:
                return salvage.entries(self._world, gone=dropped)
            return tuple(salvage.meant(self._world, session, gone=dropped))

    def get(self, target: str) -> SalvageEntry:
        """Return one saved worktree: ``SESSION/AGENT`` or ``SESSION/AGENT@ID``."""
        from swarm.worktrees.saved import salvage

        with files.os_errors("cannot read the salvage"):
            return salvage.find(self._world, target)[0]

    def drop(
        self,
        targets: Sequence[str] = (),
        *,
        everything: bool = False,
        older_than_ms: int | None = None,
        now: bool = False,
    ) -> tuple[SalvageEntry, ...]:
        """Drop saved work: it is listed no more, and deleted when ``cleanup.keep_dropped`` is over.

        Args:
            targets: which entries: all of a ``SESSION``, all of a ``SESSION/AGENT``, or one; or *everything*.
            older_than_ms: only work saved longer ago than this.
            now: delete it at once, and all that was dropped before.
        """
        from swarm.callers import rights
        from swarm.worktrees.saved import salvage_drop

        rights.check(self._world, "salvage.drop", attempt="cannot drop the salvage")
        wanted, age = tuple(targets), check_age(older_than_ms)
        with files.os_errors("cannot drop the salvage"):
            if self._is_bare() and not salvage_drop.to_drop(
                self._world, wanted, everything=everything, older_than_ms=age, now=now
            ):
                return ()  # that, or a refusal, before the first byte is written
            with self._changing("salvage drop"):
                return salvage_drop.drop(self._world, wanted, everything=everything, older_than_ms=age, now=now)
