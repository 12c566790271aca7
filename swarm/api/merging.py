"""Verbs on agents' work: diff, conflicts, merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.kit import files

if TYPE_CHECKING:
    from swarm.merging.values import ConflictReport, DiffReport, MergeReport

from swarm.api.door import Door


class Merging(Door):
    """Verbs about bringing work together."""

    def diff(self, agent: str, session: str | None = None, *, patch: bool = True) -> DiffReport:
        """Show one agent's changes since it left its base branch, committed or not. Never writes, never waits.

        Args:
            patch: also write the differences out.
        """
        from swarm.merging import diff

        found, one = self._find(agent, session)
        self._freshen([found])
        with files.os_errors(f"cannot compare {agent}"):
            return diff.report(self._world, found, one, patch=patch)

    def conflicts(self, session: str | None = None) -> ConflictReport:
        """Forecast which agents will conflict, with each other and with their base, uncommitted work included.

        Never writes to the repository or a worktree, never waits.

        Args:
            session: only this one; or an agent, for its forecast and that of each pair it is in.
        """
        from swarm.merging import conflicts

        self._freshen(self._sessions() if session is None else [self._target(session).session])
        with files.os_errors("cannot forecast conflicts"):
            return conflicts.forecast(self._world, session)

    def merge(
        self,
        target: str,
        *,
        into: str | None = None,
        how: str = "merge",
        committed_only: bool = False,
        nested: bool = False,
        dry_run: bool = False,
    ) -> MergeReport:
        """Merge the agents of a session, or one of them, into a branch: all of them or none.

        Args:
            target: ``SESSION``, ``AGENT``, ``AGENT@SESSION`` or ``SESSION/AGENT``.
            into: the branch; default: the one that the session started from.
            how: ``merge``, ``squash`` or ``rebase``.
            committed_only: leave out uncommitted work, instead of refusing.
            nested: take in nested repositories (gitlinks) that the branch does not have. For people only.
            dry_run: only return the plan.

        Raises:
            NotCommitted, MergeConflict, MergeBlocked, TargetNotFound: nothing was changed.
        """
        from swarm.merging import merge, merge_request
        from swarm.sandbox import fresh

        request = merge_request.request(target, into=into, how=how, committed_only=committed_only, nested=nested)
        with files.os_errors(f"cannot merge {target}"):
            if dry_run or not self._world.layout.state.is_dir():
                return merge.preview(self._world, request)
            with self._changing(f"merge {target}"):
                fresh.require(self._world, self._world.sessions.get(self._target(target).session.name))
                return merge.merge(self._world, request)
