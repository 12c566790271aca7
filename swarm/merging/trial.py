"""Try a merge in a quarantine: one agent after the other on top of the target."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from swarm.merging.errors import MergeConflict
from swarm.merging.values import AgentConflicts, FileConflict, Merged, MergedAgent, MergeMethod, suggest_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.merging.merge_request import Work
    from swarm.merging.quarantine import Quarantine
    from swarm.project.world import World


class Landing:
    """Puts one agent after the other on top of the target, in the quarantine."""

    def __init__(self, world: World, box: Quarantine, how: MergeMethod, into: str, old: str, *, sign: bool) -> None:
        self._world = world
        self._box = box
        self._how = how
        self._into = into
        self._old = old
        self._sign = sign
        self._clashes: dict[frozenset[str], int] = {}
        self._stuck: set[str] = set()

    def all(self, work: Sequence[Work]) -> tuple[tuple[MergedAgent, ...], str]:
        """Return the outcome of each agent, and the new tip.

        Raises:
            MergeConflict
        """
        self._graph = self._box.graph((self._old, *(tip for one in work for tip in (one.tip, one.agent.base))))
        landed = self._box.landed(self._graph, [(one.tip, one.agent.base) for one in work], self._old)
        there = [self._outcome(one, landed=how) for one, how in zip(work, landed, strict=True) if how]
        todo = [one for one, how in zip(work, landed, strict=True) if not how]
        if todo:
            self._box.check_identity()
        done, failed, at = self._go(todo)
        if failed:  # another order may do, and else it is to be told what meets what
            done, failed, at = self._go(self._in_order(todo))
        if failed:
            _raise_conflicts(failed, self._into)
        return (*there, *done), at

    def _go(self, work: Sequence[Work]) -> tuple[list[MergedAgent], list[AgentConflicts], str]:
        """Put one agent after the other on top of the target; return the outcome of each, and the last tip."""
        at = self._old
        done: list[MergedAgent] = []
        failed: list[AgentConflicts] = []
        for one in work:
            step = self._one(at, one)
            if isinstance(step, str):
                at, result = step, step if step != at else ""
                done.append(self._outcome(one, result=result, landed="" if result else "squashed"))
            else:
                failed.append(AgentConflicts(one.name, self._against(one, done), step))
        return done, failed, at

    def _outcome(self, one: Work, *, result: str = "", landed: str = "") -> MergedAgent:
        commits = len(self._graph.since(one.tip, self._old)) if result else 0
        return MergedAgent(one.session.name, one.agent.name, one.agent.branch, one.tip, commits, result, landed)

    def _in_order(self, work: Sequence[Work]) -> list[Work]:
        """Order the agents so that compatible ones merge first; record the conflicts."""
        couples = list(combinations(work, 2))
        tried = self._box.merges(
            [*((one.tip, other.tip) for one, other in couples), *((self._old, one.tip) for one in work)]
        )
        for (one, other), result in zip(couples, tried, strict=False):
            if not isinstance(result, Merged) or result.conflicts:
                files = len(result.conflicts) if isinstance(result, Merged) else 1
                self._clashes[frozenset((one.name, other.name))] = files
        for one, result in zip(work, tried[len(couples) :], strict=True):
            if not isinstance(result, Merged) or result.conflicts:
                self._stuck.add(one.name)
        by_name = {one.name: one for one in work}
        return [by_name[step.agent] for step in suggest_order(list(by_name), self._clashes, self._stuck)]

    def _against(self, one: Work, done: Sequence[MergedAgent]) -> tuple[str, ...]:
        before = [f"{agent.agent}@{agent.session}" for agent in done if agent.result]
        found = [name for name in before if frozenset((name, one.name)) in self._clashes]
        if one.name in self._stuck or not (found or before):
            found.insert(0, self._into)
        return tuple(found or before)

    def _one(self, at: str, one: Work) -> str | tuple[FileConflict, ...]:
        """Put one agent on top of *at*; return the new tip, or the conflicts."""
        if self._how is MergeMethod.REBASE:
            return self._rebase(at, one)
        merged = self._box.merge(at, one.tip)
        if merged.conflicts:
            return merged.conflicts
        if self._how is MergeMethod.SQUASH:
            if merged.tree == self._box.tree_of(at):
                return at
            return self._box.commit(merged.tree, (at,), self._squash_message(at, one), sign=self._sign)
        message = (
            f"Merge agent {one.agent.name} of session {one.session.name}\n\n"
            f"Branch: {one.agent.branch}\nRole: {one.agent.role}\n"
        )
        return self._box.commit(merged.tree, (at, one.tip), message, sign=self._sign)

    def _squash_message(self, at: str, one: Work) -> str:
        commits = self._box.commits(one.tip, at)
        subjects = [self._box.subject(commit) for commit in commits]
        what = subjects[0] if len(subjects) == 1 else f"{len(subjects)} commits"
        listed = "".join(f"* {subject} ({commit[:12]})\n" for commit, subject in zip(commits, subjects, strict=True))
        return f"{one.agent.name} of {one.session.name}: {what}\n\n{listed}"

    def _rebase(self, at: str, one: Work) -> str | tuple[FileConflict, ...]:
        tip = at
        for commit, parents in self._box.to_repeat(one.tip, at):
            if parents == (tip,):
                tip = commit  # it stands where it is to go
                continue
            picked = self._box.pick(tip, commit)
            if picked.conflicts:
                return picked.conflicts
            empty = parents and self._box.tree_of(commit) == self._box.tree_of(parents[0])
            if picked.tree != self._box.tree_of(tip) or empty:
                tip = self._box.commit_like(commit, picked.tree, tip, sign=self._sign)
        if self._box.has_merges(one.tip, at):
            # A rebase leaves merge commits out, and with them the changes of their resolutions.
            whole = self._box.merge(at, one.tip)
            if whole.conflicts or whole.tree != self._box.tree_of(tip):
                return (FileConflict("", ("its merge commits hold changes that a rebase would lose",)),)
        return tip


def _raise_conflicts(failed: Sequence[AgentConflicts], into: str) -> None:
    lines = []
    for item in failed:
        lines.append(f"{item.agent} conflicts with {', '.join(item.against)}:")
        shown = item.files[:MOST_SHOWN]
        lines += [f"  {file.path} ({', '.join(file.kinds)})" if file.path else f"  {file.kinds[0]}" for file in shown]
        if len(item.files) > len(shown):
            lines.append(f"  and {len(item.files) - len(shown)} more")
    who = ", ".join(item.agent for item in failed)
    raise MergeConflict(
        f"nothing was merged into {into}: {who} would conflict", details="\n".join(lines), conflicts=tuple(failed)
    )


MOST_SHOWN = 20
