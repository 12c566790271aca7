"""Report an agent's end and its cause to the user and to its parent, exactly once per run.

The parent is the agent that started its session.  In its queue, else in the user's, the end also is an event.

Mostly that is the process that labels the panes, which the agent's supervisor starts when it has written
down how the program ended.  Was the supervisor killed, too, the next command that changes something tells it.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from swarm.agents import after, completions, event_values, events
from swarm.agents.budgets import drawn
from swarm.agents.budgets import limits as budgets
from swarm.bus.addressing import USER
from swarm.bus.message import POSTMASTER, Message
from swarm.callers import parents
from swarm.kit.errors import SwarmError
from swarm.machine.run_folder import runfiles
from swarm.messages import deadlines
from swarm.messages.inboxes import bus_of, post_own
from swarm.programs import processes
from swarm.programs.status import STOPPED_BY_SWARM, PaneFacts, State, conclude

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from swarm.agents.event_values import AgentEvent
    from swarm.programs.status import ProgramFacts, Status
    from swarm.project.model import Agent, Session
    from swarm.project.world import World

ENDED = "agent-ended"
#: A pane opens, and its program begins, within this time.
_BEGINS_WITHIN_MS = 30_000
#: Whoever holds the lock takes in what was committed in a box, or it cannot be taken in.
_TAKEN_IN_WITHIN_MS = 60_000
#: So many reports are made side by side.
_AT_ONCE = 16
_STATUS = {State.DONE: event_values.SUCCESS, State.STOPPED: event_values.STOPPED}
_REMOVED = "it was removed before its task was done"
#: How its supervisor saw the program end → who noticed; without a supervisor it was lost.
_BY = {"budget": completions.BUDGET, "stopped": completions.STOP, "hangup": completions.LOST}


def report(world: World, sessions: Iterable[Session] | None = None, *, held: bool = False) -> int:
    """Report every unreported end and return their number. A failed report is tried again later.

    Whoever does this for all tells as well whose answers are overdue.

    Args:
        held: the caller holds the lock: what ended agents committed last in their boxes is taken in, and told.
    """
    if sessions is None:
        with suppress(SwarmError, OSError):
            deadlines.tell_all(world)
    if not any(world.layout.sessions.glob("*/run/*")):
        return 0
    chosen = world.sessions.scan()[0] if sessions is None else tuple(sessions)
    _tell_kept(world, chosen)
    _tell_lost(world, chosen)
    ended = [(one, agent) for one in chosen for agent in one.agents if agent.program and _is_over(world, one, agent)]
    boxed = [agent for _, agent in ended if agent.is_boxed] if held else []
    if boxed:
        from swarm.sandbox import fresh  # few have one

        fresh.take_in(world, [owner for agent in boxed for owner in fresh.owners(world, agent)])
    ended = [one for one in ended if not _waits_for_its_box(world, *one)]
    if len(ended) < 2:
        return sum(_told(world, *one) for one in ended)
    from concurrent.futures import ThreadPoolExecutor  # each report is synced, and the disk merges what comes at once

    with ThreadPoolExecutor(min(len(ended), _AT_ONCE)) as pool:
        return sum(pool.map(lambda one: _told(world, *one), ended))


def are_behind(world: World) -> bool:
    """Whether an end is not reported because there is something to take in first."""
    there = [(one, agent) for one in world.sessions.scan()[0] for agent in one.agents if agent.is_boxed]
    return any(_is_over(world, *one) and _waits_for_its_box(world, *one) for one in there)


def _waits_for_its_box(world: World, session: Session, agent: Agent) -> bool:
    """Whether an end is reported later, for a while: what git shows of the work is about to change."""
    if not (session.is_child and agent.is_boxed):
        return False
    from swarm.sandbox import fresh

    ended = processes.facts(world.layout.run_folder(session.name, agent.name)).ended_ms
    return time.time_ns() // 1_000_000 - ended < _TAKEN_IN_WITHIN_MS and fresh.is_behind(world, agent)


def _tell_kept(world: World, sessions: Iterable[Session]) -> None:
    """Tell the completions that were written down by a process that died before it told them."""
    for session in sessions:
        for agent in session.agents if session.is_child else ():
            with suppress(SwarmError, OSError):
                completions.tell(world, session, agent)


def _tell_lost(world: World, sessions: Iterable[Session]) -> None:
    """Tell of spawned agents whose pane went before their program began: no supervisor lives that could."""
    late = time.time_ns() // 1_000_000 - _BEGINS_WITHIN_MS
    silent = [
        (one, agent)
        for one in sessions
        if one.is_child and one.created_ms < late
        for agent in one.agents
        if agent.program and not (world.layout.run_folder(one.name, agent.name) / runfiles.PROCESS).exists()
    ]
    if not silent:
        return
    from swarm.agents.view import View

    view = View(world, {(one.name, agent.name) for one, agent in silent})
    for one, agent in silent:
        with suppress(SwarmError, OSError):
            if view.pane(one, agent) is None and completions.look(world, one, agent) is None:
                drawn.settle(world, one, agent, over=True)
                name = f"lost.{completions.id_of(one, agent)}"
                failed, cause = event_values.FAILURE, "its pane was lost before its program began"
                completions.notice(world, one, agent, failed, cause, by=completions.LOST, time_ms=0, name=name)


def _is_over(world: World, session: Session, agent: Agent) -> bool:
    """Whether an agent's program has ended, and its end was not reported."""
    run = world.layout.run_folder(session.name, agent.name)
    with suppress(SwarmError, OSError):
        if (run / runfiles.PROCESS).exists():
            facts = processes.facts(run)
            running = facts.alive or facts.supervised
            return bool(facts.pid) and not running and not _is_told(run, _name(session, agent, facts))
    return False


def _told(world: World, session: Session, agent: Agent) -> bool:
    with suppress(SwarmError, OSError):  # a failed report does not hold up the others
        return _tell_of(world, session, agent)
    return False


def _tell_of(world: World, session: Session, agent: Agent) -> bool:
    run = world.layout.run_folder(session.name, agent.name)
    facts = processes.facts(run)
    name = _name(session, agent, facts)
    status = conclude(agent.program, facts, PaneFacts())
    message = _message(session, agent, status, name)
    with closing(bus_of(world)) as bus:
        post_own(bus, message)
        parent = parents.heir(world, session)
        if parent is not None:
            post_own(bus, message._replace(to=parent.address, generation=parent.generation))
        if facts.exit_cause == "budget":
            post_own(bus, *budgets.tell_of_disk(world, session, agent))
    if facts.exit_cause == "budget":
        events.publish(world, session, _budget_event(session, agent, status, name))
    _complete(world, session, agent, facts, status, name)
    drawn.settle(world, session, agent)
    if status.state is State.DONE:
        after.finished(world, session, agent)
    runfiles.write(str(run), runfiles.TOLD, {"id": name})
    return True


def _name(session: Session, agent: Agent, facts: ProgramFacts) -> str:
    """Return the id of the notice of one run: sent twice it is one message."""
    run = f"{session.name}/{agent.name}/{session.created_ms}/{facts.started_ms}/{facts.pid}"
    return f"ended.{sha256(run.encode()).hexdigest()[:16]}"


def _is_told(run: Path, name: str) -> bool:
    return (runfiles.read(str(run), runfiles.TOLD) or {}).get("id") == name


def _message(session: Session, agent: Agent, status: Status, name: str) -> Message:
    who = f"{agent.name}@{session.name}"
    held = () if status.state is State.DONE else after.held(session, agent)
    waiting = "".join(f"The task of {one} waits for it; give it now: `swarm pod release {one}`.\n" for one in held)
    return Message(
        to=USER,
        sender=POSTMASTER,
        type=ENDED,
        id=name,
        subject=f"{who} is {status.state}: {status.detail}",
        body=f"Why: `swarm why {who}`. Last output: `swarm peek {who}`. Start it again: `swarm restart {who}`.\n"
        f"{waiting}After a cleanup, restore it first: `swarm restore {session.name}/{agent.name}`.",
        metadata={
            "agent": agent.name,
            "session": session.name,
            "state": str(status.state),
            "detail": status.detail,
            "ended_ms": status.since_ms,
        },
    )


def tell_removed(world: World, session: Session, agent: Agent) -> None:
    """Tell the parent of a spawned agent that it is removed, if nothing was told of its task."""
    with suppress(SwarmError, OSError):  # a removal goes on
        drawn.settle(world, session, agent, over=True)
        if completions.look(world, session, agent) is None:
            name = f"removed.{completions.id_of(session, agent)}"
            completions.notice(
                world, session, agent, event_values.STOPPED, _REMOVED, by=completions.STOP, time_ms=0, name=name
            )


def _budget_event(session: Session, agent: Agent, status: Status, name: str) -> AgentEvent:
    kind, reached = event_values.BUDGET_REACHED, event_values.REACHED
    who, time_ms = (agent.name, session.name), status.since_ms
    return events.event(kind, *who, reached, status.detail, name=f"budget.{name}", time_ms=time_ms)


def _complete(world: World, session: Session, agent: Agent, facts: ProgramFacts, status: Status, name: str) -> None:
    """Tell the parent: once for the task of a spawned agent, and of all others once for each run."""
    result = _STATUS.get(status.state, event_values.FAILURE)
    if session.is_child or completions.look(world, session, agent) is not None:
        by = _BY.get(facts.exit_cause, completions.EXIT) if facts.exit_cause else completions.LOST
        by = completions.STOP if status.detail == STOPPED_BY_SWARM else by
        completions.notice(world, session, agent, result, status.detail, by=by, time_ms=status.since_ms, name=name)
        return
    kind = event_values.WORKER_COMPLETE
    event = events.event(kind, agent.name, session.name, result, status.detail, name=name, time_ms=status.since_ms)
    events.publish(world, session, event)
