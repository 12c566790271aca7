"""Remove worktrees without losing work.

    look ──► refuse? ──► [save] write salvage refs ──► [remove] move away, delete branches ──► forget
                            crash: take the refs back        crash: the next command goes on

Nothing is removed until every salvage ref is on the disk.  From then on the operation only goes forward, so the next
command completes a cleanup that was cut short.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.agents import running, view
from swarm.callers import rights
from swarm.kit import files
from swarm.kit.errors import Interrupted, raise_all
from swarm.project import layout as places
from swarm.project.targets import no_session
from swarm.project.world import is_elsewhere
from swarm.sessions.cleanup import elsewhere, in_boxes, refusal
from swarm.sessions.cleanup.cleanup_remove import (
    finish,
    give_up,
    half_removed,
    remove_all,
    remove_leftover,
    told,
    undeletable,
)
from swarm.sessions.cleanup.cleanup_request import Request
from swarm.sessions.cleanup.cleanup_save import checked_out, name_of, save, work_files
from swarm.sessions.errors import CleanupFailed
from swarm.sessions.reports import CleanupReport, Removed, Skipped
from swarm.worktrees import strays, trash
from swarm.worktrees.examine import Target, examine_all
from swarm.worktrees.reports import AgentRisks, Risk, RiskKind
from swarm.worktrees.setup.teardown import Teardowns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from swarm.project.model import Agent, Session
    from swarm.project.world import World


def preview(world: World, request: Request) -> CleanupReport:
    """Return the plan of ``cleanup``, with the same refusals. Changes nothing."""
    chosen, skipped = _choose(world, request)
    go, more = _decide(world, request, chosen)
    left = leftover_branches(world, {agent.branch for t in chosen for agent in (t.agent,)}) if _all(request) else {}
    ends = Teardowns(world, go, request.role)
    removed = tuple(
        Removed(
            *(t.session.name, t.agent.name, t.agent.role, t.tree, t.agent.branch),
            branch_deleted=bool(t.agent.branch) and not request.keep_branches,
            shared=t.agent.shared,
            head=t.state.head if t.state else "",
            saved_files=0 if request.discard else len(work_files(t)),
            discarded=work_files(t) if request.discard else (),
            dropped=t.dropped,
            notes=tuple(f"would run `{line}` first" for line in ends.lines(t.session.name, t.agent.name)),
        )
        for t in go
    )
    return CleanupReport(
        removed=removed,
        skipped=(*skipped, *more),
        branches=() if request.keep_branches else tuple(left),
        sessions=_whole_sessions(go),
        warnings=tuple(strays.sweep(world, force=request.force, dry_run=True)) if _all(request) else (),
        dry_run=True,
    )


def cleanup(world: World, request: Request) -> CleanupReport:
    """Remove the requested worktrees. The caller holds the lock and has recovered.

    Raises:
        WorkAtRisk: nothing was removed.
        CleanupFailed: some could not be removed; the rest is.
    """
    in_boxes.take_in(world, request)
    chosen, skipped = _choose(world, request)
    go, more = _decide(world, request, chosen)
    ended = _end_programs(world, go)
    ends = Teardowns(world, go, request.role)
    if ends.run() or ended:  # what they wrote while they ended must be seen too
        in_boxes.take_in(world, request)
        chosen, skipped = _choose(world, request)
        go, more = _decide(world, request, chosen)
    ends.end_servers()
    going = {target.agent.branch for target in go}
    leftover = leftover_branches(world, going) if _all(request) and not request.keep_branches else {}
    record, summary = save(world, request, go, leftover)
    try:
        failures = remove_all(world, record)
        branches = remove_leftover(world, record)
    except Interrupted as error:
        error.message += " (everything is saved; the next swarm command finishes the removal)"
        raise
    if not half_removed(world, record, failures):
        finish(world, give_up(world, record, failures))
    if _all(request):
        trash.drain_pool(world)
    failed = {(f.name): f for f in failures}
    removed = told(world, record, [item for item in summary if f"{item.session}/{item.agent}" not in failed])
    report = CleanupReport(
        removed=removed,
        skipped=(*skipped, *more, *failures),
        branches=branches,
        sessions=tuple(name for name in _whole_sessions(go) if world.sessions.get(name) is None),
        warnings=(
            *ends.warnings,
            *elsewhere.warnings(t for t in go if name_of(t) not in failed),
            *undeletable(world, record),
            *(strays.sweep(world, force=request.force) if _all(request) else ()),
        ),
    )
    if failures:
        lines = "; ".join(f"{f.name}: {f.reason}" for f in failures)
        raise CleanupFailed(f"could not remove everything: {lines}", failed=failures, report=report)
    return report


def _end_programs(world: World, targets: tuple[Target, ...]) -> bool:
    """Stop the running agents of the worktrees to remove; return whether any ran."""
    sessions = {t.session.name: t.session for t in targets if t.agent.program}
    ended = False
    for session in sessions.values():
        wanted = {t.agent.name for t in targets if t.session.name == session.name}
        live = [agent for agent in view.live_agents(world, session) if agent.name in wanted]
        if live:
            running.stop(world, session, live)
            ended = True
    return ended


def _all(request: Request) -> bool:
    return request.everything and request.older_than_ms is None


# --- choose and refuse ----------------------------------------------------------------------------


def _choose(world: World, request: Request) -> tuple[tuple[Target, ...], tuple[Skipped, ...]]:
    if request.discard:
        rights.check(world, "cleanup.discard", attempt="cannot discard work")
    if _all(request):
        rights.check_others(world, "cleanup", "cannot clean up everything")
    sessions = _sessions(world, request)
    skipped: list[Skipped] = []
    pairs: list[tuple[Session, Agent]] = []
    now = time.time_ns() // 1_000_000
    for session in sessions:
        if request.everything and not request.elsewhere and is_elsewhere(world, session):
            made = f"made with another swarm directory, {session.swarm_dir}"
            skipped.append(Skipped(session.name, f"{made}; to remove it, name it"))
            continue
        age = now - session.created_ms if session.created_ms > 0 else -1
        if request.older_than_ms is not None and age < request.older_than_ms:
            skipped.append(Skipped(session.name, "younger than asked for" if age >= 0 else "its age is unknown"))
            continue
        pairs += [(session, agent) for agent in session.agents if _wanted(world, request, session, agent)]
    rights.check(world, "cleanup", pairs, attempt="cannot clean up")
    found = in_boxes.with_risk(world, elsewhere.with_risk(world, examine_all(world, pairs)))
    return _with_those_that_begin(world, found), tuple(skipped)


def _with_those_that_begin(world: World, targets: tuple[Target, ...]) -> tuple[Target, ...]:
    """Let a program that is about to start in a shared folder count as running: no worktree shows its launcher."""
    quiet = [t for t in targets if t.agent.shared and not t.risks]
    starting = _running(world, quiet)
    risk = Risk(RiskKind.PROCESS, "the agent is starting")
    return tuple(
        replace(t, risks=(risk,)) if t in quiet and (t.session.name, t.agent.name) in starting else t for t in targets
    )


def _sessions(world: World, request: Request) -> tuple[Session, ...]:
    if request.everything or request.only_missing or (request.older_than_ms is not None and not request.sessions):
        return world.sessions.all()
    wanted = dict.fromkeys((*request.sessions, *(session for session, _ in request.agents)))
    found = {name: world.sessions.get(name) for name in wanted}
    raise_all("cannot clean up", [no_session(world, name) for name, s in found.items() if s is None])
    unique = {session.name: session for session in found.values() if session is not None}
    return tuple(unique.values())


def _wanted(world: World, request: Request, session: Session, agent: Agent) -> bool:
    named = session.name.casefold() in [name.casefold() for name in request.sessions]
    if request.agents and not named and (session.name, agent.name) not in request.agents:
        return False
    return not request.only_missing or not files.exists(world.layout.root / agent.worktree)


def _decide(
    world: World, request: Request, chosen: tuple[Target, ...]
) -> tuple[tuple[Target, ...], tuple[Skipped, ...]]:
    """Split the targets into removed and skipped ones; refuse unexpected skips."""
    unsafe = [
        Skipped(name_of(t), "; ".join(filter(None, (t.unsafe, t.way_out))), "IDENTITY") for t in chosen if t.unsafe
    ]
    safe = tuple(t for t in chosen if not t.unsafe)
    at_risk = [t for t in safe if t.risks]
    if unsafe and not safe:
        first = next(t for t in chosen if t.unsafe)
        message = f"cannot remove {name_of(first)}: {first.unsafe}"
        raise CleanupFailed(message, hint=first.way_out or None, failed=tuple(unsafe))
    if not at_risk or request.force:
        return safe, tuple(unsafe)
    if request.older_than_ms is not None:
        skipped = [Skipped(name_of(t), "; ".join(risk.text for risk in t.risks), "WORK_AT_RISK") for t in at_risk]
        return tuple(t for t in safe if not t.risks), (*unsafe, *skipped)
    agents = tuple(AgentRisks(t.session.name, t.agent.name, t.tree, t.risks) for t in at_risk)
    raise refusal.at_risk(agents, discard=request.discard, whole=not request.agents, running=_running(world, at_risk))


def _running(world: World, targets: list[Target]) -> set[tuple[str, str]]:
    """Return whose own program runs."""
    sessions = {t.session.name: t.session for t in targets if t.agent.program}
    return {(name, agent.name) for name, session in sessions.items() for agent in view.live_agents(world, session)}


def _whole_sessions(targets: Iterable[Target]) -> tuple[str, ...]:
    count: dict[str, int] = {}
    size: dict[str, int] = {}
    for target in targets:
        count[target.session.name] = count.get(target.session.name, 0) + 1
        size[target.session.name] = len(target.session.agents)
    return tuple(name for name, n in count.items() if n == size[name])


# --- branches without a worktree ------------------------------------------------------------------


def leftover_branches(world: World, going: AbstractSet[str] = frozenset()) -> dict[str, str]:
    """Return swarm's own branches that no agent and no worktree has: name → tip."""
    prefix = world.settings.worktrees.branch_prefix
    used = {agent.branch for session in world.sessions.all() for agent in session.agents} | going
    used |= checked_out(world, ())
    found = {ref.removeprefix(places.HEADS): oid for ref, oid in world.git.refs(f"{places.HEADS}{prefix}/").items()}
    return {
        branch: tip
        for branch, tip in found.items()
        # The branch's own log names its creator; its name alone would prove nothing.
        if branch not in used and world.git.first_reflog_message(branch).startswith("swarm: ")
    }


def sweep_branches(world: World) -> tuple[str, ...]:
    """Delete swarm's branches that have no worktree, each saved first; return their names."""
    rights.check_others(world, "cleanup_swarm_branches", "cannot clean up branches")
    record, _ = save(world, Request(), (), leftover_branches(world, set()))
    removed = remove_leftover(world, record)
    finish(world, record)
    return removed
