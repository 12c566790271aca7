"""Verbs on whole parts of the tree: stop, clean up, merge, and give a child another parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.api.swarm import Swarm
    from swarm.merging.values import MergeReport
    from swarm.project.model import Agent, Session
    from swarm.sessions.reports import CleanupReport, StopReport
    from swarm.tree.values import FoldedNode, TreeAgent


class WholeTrees(Door):
    """Verbs about an agent and everything below it."""

    def stop(self, agent: str) -> StopReport:
        """End the programs of an agent and of all below it, leaves first; worktrees and panes stay.

        Args:
            agent: as ``name@session``, or a name that only one session has.

        Raises:
            AgentNotFound, NotForAgents
        """
        from swarm.agents import stop_tree
        from swarm.sessions.reports import StopReport

        self._reach("tree.stop", agent)
        with files.os_errors(f"cannot stop the tree of {agent}"), self._changing(f"stop --tree {agent}"):
            found = self._reach("tree.stop", agent)  # again below the lock: a spawn may have come before it
            return StopReport(*stop_tree.stop(self._world, *found))

    def cleanup(
        self, agent: str, *, force: bool = False, keep_branches: bool = False, dry_run: bool = False
    ) -> CleanupReport:
        """Remove an agent that was spawned and all below it, or all below an agent of a team: everything or nothing.

        Args:
            agent: as ``name@session``, or a name that only one session has.
            force, keep_branches, dry_run: as for ``Swarm.cleanup``.

        Raises:
            WorkAtRisk: nothing was removed.
            AgentNotFound, NotForAgents
        """
        from swarm.tree import folding

        found = self._reach("tree.cleanup", agent)
        names = [one.name for one in folding.from_the_leaves(self._world, *found)]
        if not names:
            from swarm.sessions.reports import CleanupReport

            return CleanupReport(dry_run=dry_run)
        return self._all.cleanup(names, force=force, keep_branches=keep_branches, dry_run=dry_run)

    def merge(
        self,
        agent: str,
        *,
        how: str = "merge",
        unfinished: bool = False,
        clean: bool = True,
        dry_run: bool = False,
    ) -> tuple[FoldedNode, ...]:
        """Merge every subtree into the branch that it was cut from, the deepest first; then remove what has landed.

        Each is merged whole or not at all. The first that cannot be merged ends it: those above it would lack its work.

        Args:
            agent: a spawned lead, with all below it; or an agent of a team, of which only those below it are merged.
            how: as for ``Swarm.merge``.
            unfinished: also subtrees whose lead did not report success.
            clean: remove each whose work is proved to have landed and whose task is done, with its workers.
            dry_run: only say what would be merged.

        Returns:
            A report for each, in the order of the merges.

        Raises:
            AgentNotFound, NotForAgents, UsageProblem
        """
        from swarm.tree import folding

        found = self._reach("tree.merge", agent)
        reports: list[FoldedNode] = []
        merged: list[tuple[Session, MergeReport]] = []
        for node in folding.nodes(self._world, *found):
            done, report = self._fold(node, reports, how=how, unfinished=unfinished, dry_run=dry_run)
            reports.append(done)
            if report is not None and not dry_run:
                merged.append((node, report))
        if clean:
            for node, report in merged:
                at = next(number for number, one in enumerate(reports) if one.session == node.name)
                why = self._clean(node, report)
                reports[at] = reports[at]._replace(cleaned=not why, why=why)
        return tuple(reports)

    def _fold(
        self, node: Session, before: Sequence[FoldedNode], *, how: str, unfinished: bool, dry_run: bool
    ) -> tuple[FoldedNode, MergeReport | None]:
        """Merge one subtree, unless one before it could not be."""
        from swarm.tree import folding
        from swarm.tree.values import FoldedNode

        lead = node.agents[0]
        told = FoldedNode(f"{lead.name}@{node.name}", node.name, lead.branch, node.base_ref)
        blocked = next((one for one in before if not one.merged), None)
        why = f"{blocked.address} could not be merged" if blocked is not None else ""
        why = why or ("" if unfinished else folding.why_open(self._world, node))
        if why:
            return told._replace(why=why), None
        try:
            report = self._all.merge(node.name, how=how, dry_run=dry_run)
        except SwarmError as error:
            return told._replace(why=error.message, code=error.code, hint=error.hint), None
        return told._replace(merged=True, commits=sum(one.commits for one in report.agents), tip=report.new), report

    def _clean(self, node: Session, report: MergeReport) -> str:
        """Remove a merged subtree with its workers; return why it stays."""
        from swarm.tree import folding

        try:
            why = folding.why_not_clean(self._world, node, report)
            if why:
                return why
            lead = f"{node.agents[0].name}@{node.name}"
            self.stop(lead)
            self.cleanup(lead)
        except SwarmError as error:
            return error.message
        return ""

    def adopt(self, child: str, to: str) -> TreeAgent:
        """Give a child another parent, which is told of it from then on. For people.

        Args:
            child: a spawned agent, as ``name@session``.
            to: the new parent, or ``user``.

        Raises:
            UsageProblem: the child was not spawned, or the new parent is below it.
            AgentNotFound, NotForAgents, NotAPerson, TreeLimit
        """
        from swarm.bus.addressing import USER
        from swarm.callers import rights
        from swarm.sessions import adopting
        from swarm.tree import ground, listing, spawn

        attempt = f"cannot give {child} to {to}"
        rights.check(self._world, "tree.adopt", attempt=attempt)
        with files.os_errors(attempt), self._changing(f"adopt {child}"):
            session, agent = self._agent(child)
            above = None if to == USER else self._agent(to)
            depth = ground.depth_of(self._world, above[0]) if above is not None else 1
            spawn.check_adoption(self._world, session, above, depth)
            adopting.adopt(self._world, session, above, depth)
            return listing.one(self._world, self._session(session.name), agent)

    def _reach(self, verb: str, agent: str) -> tuple[Session, Agent]:
        """Return an agent on which the caller may act with all below it.

        Raises:
            AgentNotFound, NotForAgents
        """
        found = self._agent(agent)
        self._refuse_strangers(verb, *found)
        return found

    def _agent(self, address: str) -> tuple[Session, Agent]:
        name, _, session = address.partition("@")
        if not session and "@" not in address and self._world.sessions.get(name) is not None:
            one = self._session(name)  # the name of a subtree is that of its session
            return one, one.agents[0]
        found: tuple[Session, Agent] = self._find(name, session or None)
        return found

    @property
    def _all(self) -> Swarm:
        from swarm.api.swarm import Swarm

        return Swarm(self._opened)
