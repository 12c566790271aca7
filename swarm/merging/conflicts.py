"""Forecast conflicts: merge every pair of agents in a place that is thrown away.

What an agent has not committed counts too: its whole worktree is taken as if it were committed now.
Only reads; nothing is written to the repository or to a worktree, and nobody waits for a lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from swarm.git.changes import Checkout
from swarm.kit.errors import SwarmError
from swarm.merging.values import (
    AgentForecast,
    ConflictReport,
    Forecast,
    HotFile,
    Merged,
    PairForecast,
    Snapshot,
    suggest_order,
)
from swarm.project import layout as places
from swarm.project import targets
from swarm.worktrees.errors import no_own_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from swarm.git.graph import Graph
    from swarm.merging.quarantine import Quarantine
    from swarm.project.model import Agent, Session
    from swarm.project.targets import Target
    from swarm.project.world import World


def checkout_of(world: World, agent: Agent) -> Checkout | None:
    """Return an agent's worktree if it exists and git knows it."""
    if agent.shared:
        return None
    tree = world.layout.root / agent.worktree
    admin = world.git.admin_of(tree)
    if tree.is_symlink() or not tree.is_dir() or admin is None or (agent.admin and admin.name != agent.admin):
        return None
    return Checkout(tree, admin.path)


def branch_tip(world: World, branch: str) -> str:
    """Return the tip of the branch of exactly this name; empty without one."""
    ref = places.HEADS + branch
    return world.git.tips(ref).get(ref, "") if branch else ""


def base_of(world: World, session: Session) -> tuple[str, str]:
    """Return the branch in which a session's work is to land, and its tip.

    That is the branch that it started from, else the one of the main checkout; outside of any branch
    the name is ``HEAD``.
    """
    branch = session.base_ref.removeprefix(places.HEADS)
    tip = branch_tip(world, branch)
    if tip:
        return branch, tip
    branch = world.git.head_branch() or ""
    return branch or "HEAD", world.git.resolve_commit("HEAD") or ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """An agent's forecast so far, with the commits to try: its work and its target."""

    forecast: AgentForecast
    tip: str
    onto: str
    start: str

    def unknown(self, reason: str) -> _Seen:
        return replace(self, forecast=replace(self.forecast, status=Forecast.UNKNOWN, reason=reason))


def forecast(world: World, session: str | None) -> ConflictReport:
    """Try all merges.

    Raises:
        SessionNotFound, GitTooOld
    """
    world.git.require((2, 38), "forecast conflicts")
    target = targets.find(world, session) if session is not None else None
    agents = _agents(world, target)
    with world.merging.quarantine() as box:
        world.progress("looking at the worktrees")
        seen = _against_base(box, _look(world, box, agents))
        world.progress("trying the merges")
        live = [one for one in seen if not one.forecast.landed]
        pairs = _pairs(box, live)
    report = ConflictReport(
        agents=tuple(one.forecast for one in seen),
        pairs=pairs,
        hot=_hot_files([one.forecast for one in live]),
        order=suggest_order(
            [one.forecast.name for one in live],
            weights(pairs),
            [one.forecast.name for one in live if one.forecast.status in (Forecast.CONFLICT, Forecast.UNKNOWN)],
        ),
    )
    if target is None or target.agent is None:
        return report
    return _of_one(report, f"{target.agent.name}@{target.session.name}")


def _of_one(report: ConflictReport, name: str) -> ConflictReport:
    """Return the part of a report that is about one agent: it has no order."""
    return ConflictReport(
        agents=tuple(one for one in report.agents if one.name == name),
        pairs=tuple(pair for pair in report.pairs if name in (pair.one, pair.other)),
        hot=tuple(file for file in report.hot if name in file.agents),
    )


def weights(pairs: Iterable[PairForecast]) -> dict[frozenset[str], int]:
    """Return the weight of each pair for ``suggest_order``; an unknown forecast counts as a conflict."""
    return {
        frozenset((pair.one, pair.other)): max(1, len(pair.conflicts))
        for pair in pairs
        if pair.status in (Forecast.CONFLICT, Forecast.UNKNOWN)
    }


def _agents(world: World, target: Target | None) -> list[tuple[Session, Agent]]:
    if target is not None and target.agent is not None and target.agent.shared:
        raise no_own_tree(f"{target.agent.name}@{target.session.name}", target.agent.worktree)
    sessions = world.sessions.all() if target is None else (target.session,)
    return [(one, agent) for one in sessions for agent in one.agents if not agent.shared]


def _look(world: World, box: Quarantine, agents: Sequence[tuple[Session, Agent]]) -> list[_Seen]:
    bases = {session.name: base_of(world, session) for session, _ in agents}
    checkouts = [checkout_of(world, agent) for _, agent in agents]
    placed = [frozenset(file.path for file in agent.placed) for _, agent in agents]
    snapshots = _snapshots(world, box, {one: known for one, known in zip(checkouts, placed, strict=True) if one})
    found = []
    for (session, agent), checkout in zip(agents, checkouts, strict=True):
        into, onto = bases[session.name]
        blank = _Seen(
            AgentForecast(
                *(f"{agent.name}@{session.name}", session.name, agent.name),
                path=world.layout.root / agent.worktree,
                branch=agent.branch,
                into=into,
                status=Forecast.CLEAN,
            ),
            "",
            onto,
            agent.base,
        )
        state = snapshots[checkout] if checkout else _branch_only(world, agent)
        if isinstance(state, SwarmError):
            found.append(blank.unknown(state.message))
        else:
            known = replace(blank, tip=state.commit)
            found.append(replace(known, forecast=replace(known.forecast, uncommitted=state.uncommitted)))
    return found


def _snapshots(
    world: World, box: Quarantine, checkouts: Mapping[Checkout, AbstractSet[str]]
) -> dict[Checkout, Snapshot | SwarmError]:
    """Look at worktrees; *checkouts* tells of each which files swarm placed, hidden from git."""
    found: dict[Checkout, Snapshot | SwarmError] = {}
    for checkout, rest in zip(checkouts, world.trees.at_rest(tuple(checkouts)), strict=True):
        if rest is not None and not rest.changed and rest.found.files.keys() <= rest.tracked | checkouts[checkout]:
            found[checkout] = Snapshot(rest.head, rest.head)
    others = [checkout for checkout in checkouts if checkout not in found]
    return found | dict(zip(others, box.snapshots(others), strict=True))


def _branch_only(world: World, agent: Agent) -> Snapshot | SwarmError:
    """Return the branch of an agent without a worktree."""
    tip = branch_tip(world, agent.branch)
    return Snapshot(tip, tip) if tip else SwarmError("its worktree and its branch are gone")


def _against_base(box: Quarantine, seen: Sequence[_Seen]) -> list[_Seen]:
    tried = [one for one in seen if one.tip and one.onto]
    results = dict(zip(tried, box.merges([(one.onto, one.tip) for one in tried]), strict=True))
    found = _judge_all(box, results) if tried else {}
    return [found[one] if one in found else one.unknown("there is no base branch") if one.tip else one for one in seen]


def _judge_all(box: Quarantine, results: Mapping[_Seen, Merged | SwarmError]) -> dict[_Seen, _Seen]:
    """Forecast the merge of each agent into its base branch; after a failure of git, one by one."""
    try:
        graph = box.graph(commit for one in results for commit in (one.onto, one.tip, one.start))
        trees = {
            one: tuple(map(graph.tree_of, (graph.fork(one.onto, one.tip) or one.start, one.tip, one.onto)))
            for one in results
        }
        touched = box.touched((fork, side) for fork, *sides in trees.values() for side in sides)
        landed = _landed(box, graph, results)
    except SwarmError as error:
        if len(results) == 1:
            return {one: one.unknown(error.message) for one in results}
        return {one: new for each in results for one, new in _judge_all(box, {each: results[each]}).items()}
    return {
        one: _judge(one, result, touched[fork, own], touched[fork, onto], landed=one in landed)
        for (one, result), (fork, own, onto) in zip(results.items(), trees.values(), strict=True)
    }


def _landed(box: Quarantine, graph: Graph, results: Mapping[_Seen, Merged | SwarmError]) -> set[_Seen]:
    """Return those whose work is in the base branch already."""
    found = set()
    for one, result in results.items():
        if isinstance(result, SwarmError):
            continue
        if not result.conflicts:
            if result.tree == graph.tree_of(one.onto):
                found.add(one)
        # Squashed or rebased, and changed again since: that looks like a conflict, and is none.
        elif not one.forecast.uncommitted and any(box.landed(graph, [(one.tip, one.start)], one.onto)):
            found.add(one)
    return found


def _judge(
    one: _Seen, result: Merged | SwarmError, own: tuple[str, ...], others: tuple[str, ...], *, landed: bool
) -> _Seen:
    """Forecast the merge of one agent into its base branch.

    Args:
        own: the files that it changed.
        others: those that the base branch changed meanwhile.
    """
    if isinstance(result, SwarmError):
        return replace(one, forecast=replace(one.forecast, touched=own)).unknown(result.message)
    if not own or landed:
        return replace(one, forecast=replace(one.forecast, landed=True))
    status = Forecast.CONFLICT if result.conflicts else Forecast.CLEAN
    if status is Forecast.CLEAN and set(own) & set(others):
        status = Forecast.OVERLAP
    return replace(one, forecast=replace(one.forecast, status=status, conflicts=result.conflicts, touched=own))


def _pairs(box: Quarantine, seen: Sequence[_Seen]) -> tuple[PairForecast, ...]:
    couples = list(combinations(seen, 2))
    results = iter(box.merges([(one.tip, other.tip) for one, other in couples if one.tip and other.tip]))
    return tuple(_pair(one, other, next(results) if one.tip and other.tip else None) for one, other in couples)


def _pair(one: _Seen, other: _Seen, result: Merged | SwarmError | None) -> PairForecast:
    overlap = tuple(sorted(set(one.forecast.touched) & set(other.forecast.touched)))
    blank = PairForecast(one.forecast.name, other.forecast.name, Forecast.CLEAN, overlap)
    if isinstance(result, Merged):
        if result.conflicts:
            return replace(blank, status=Forecast.CONFLICT, conflicts=result.conflicts)
        return replace(blank, status=Forecast.OVERLAP if overlap else Forecast.CLEAN)
    if result is not None:
        return replace(blank, status=Forecast.UNKNOWN, reason=result.message)
    blind = one if not one.tip else other
    return replace(blank, status=Forecast.UNKNOWN, reason=f"{blind.forecast.name}: {blind.forecast.reason}")


def _hot_files(agents: Sequence[AgentForecast]) -> tuple[HotFile, ...]:
    """Return the files that several agents touch, the most touched first."""
    who: dict[str, list[str]] = {}
    for agent in agents:
        for path in agent.touched:
            who.setdefault(path, []).append(agent.name)
    hot = [HotFile(path, tuple(by)) for path, by in who.items() if len(by) > 1]
    return tuple(sorted(hot, key=lambda file: (-len(file.agents), file.path)))
