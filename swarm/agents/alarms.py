"""Notify the user when an agent starts to wait, fails or finishes: a bell, a status line, the user's command.

Whoever labels the panes looks for such agents.  What was seen last is noted beside the agent's other
notes before anybody is called: rather one call too few after a crash than one at every look.

That an agent waits also is an event for whoever started it.  That is put down before the note; its id follows from
what was noted before, so that after a crash in between it is the same event.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from swarm.agents import event_values, events
from swarm.kit.commandline import words_of
from swarm.kit.errors import SwarmError
from swarm.machine import runfiles
from swarm.programs.status import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swarm.project.model import Session
    from swarm.project.reports import AgentStatus, SessionStatus
    from swarm.project.world import World


def call(world: World, found: Sequence[SessionStatus]) -> int:
    """Tell the user of every agent that is newly in one of the states of ``notify.states``; return of how many."""
    news = list(_news(world, found))
    for session, item in news:
        _run(world, session, item)
    if news and world.settings.notify.bell:
        world.terminal.ring(_line(*news[0]) + (f", and {len(news) - 1} more" if len(news) > 1 else ""))
    return len(news)


def _news(world: World, found: Sequence[SessionStatus]) -> Iterable[tuple[str, AgentStatus]]:
    for one in found:
        for item in one.agents:
            if item.agent.program and _is_new(world, one.session, item):
                yield one.session.name, item


def _is_new(world: World, session: Session, item: AgentStatus) -> bool:
    """Whether the agent is in another state than at the last look, in one that matters; it is noted as seen."""
    run = world.layout.run_folder(session.name, item.agent.name)
    status = item.status
    now: dict[str, object] = {"state": str(status.state), "since_ms": status.since_ms}
    if not status.since_ms:  # else the words for one and the same time may still get better
        now["detail"] = status.detail
    seen = runfiles.read(str(run), runfiles.CALLED) or {}
    if not run.is_dir() or {key: seen.get(key) for key in now} == now:
        return False
    times = seen.get("times")
    count = times + 1 if isinstance(times, int) else 1
    try:
        if status.state is State.WAITING:
            _tell_waiting(world, session, item, count)
        runfiles.write(str(run), runfiles.CALLED, {**now, "times": count})
    except (OSError, SwarmError):  # cleaned up meanwhile, or no room: it would be told again and again
        return False
    return status.state in world.settings.notify.states


def _tell_waiting(world: World, session: Session, item: AgentStatus, count: int) -> None:
    """Put it into the queue of whoever started the agent.

    Args:
        count: how often its state was a new one: it may wait for the same thing again.
    """
    agent, status = item.agent, item.status
    which = f"{session.name}/{agent.name}/{session.generation_of(agent)}/{item.pid}/{count}/{status.since_ms}"
    name = f"waiting.{sha256(which.encode()).hexdigest()[:16]}"
    kind, waiting = event_values.AGENT_WAITING, event_values.WAITING
    at = {"time_ms": status.since_ms}
    events.tell(world, session, events.event(kind, agent.name, session.name, waiting, status.detail, name=name, **at))


def _line(session: str, item: AgentStatus) -> str:
    """Say it in one line without anything that a terminal, or tmux, would obey."""
    said = f"{item.agent.name}@{session} is {item.status.state}"
    detail = "".join(c if c.isprintable() else " " for c in item.status.detail)[:200]
    return f"{said}: {detail}" if detail else said


def _run(world: World, session: str, item: AgentStatus) -> None:
    command = world.settings.notify.command
    if not command:
        return
    told = {
        "SWARM_AGENT": item.agent.name,
        "SWARM_SESSION": session,
        "SWARM_STATE": str(item.status.state),
        "SWARM_DETAIL": item.status.detail.replace("\0", " "),
        "SWARM_REPOSITORY": str(world.layout.root),
    }
    world.processes.run_aside([*words_of(command), _line(session, item)], {**world.environ, **told})
