"""Notify the user when an agent starts to wait, fails or finishes: a bell, a status line, the user's command.

Whoever labels the panes looks for such agents.  What was seen last is noted beside the agent's other
notes before anybody is called: rather one call too few after a crash than one at every look.

That an agent waits, or that its turn is over, also is an event for whoever started it.  That is put down before the
note; its id follows from what was noted before, so that after a crash in between it is the same event.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from swarm.agents import after, asked, event_values, events
from swarm.kit.commandline import words_of
from swarm.kit.errors import SwarmError
from swarm.machine.run_folder import runfiles
from swarm.programs import processes
from swarm.programs.reading.transcript import last_said
from swarm.programs.reading.transcripts import open_transcript
from swarm.programs.status import State
from swarm.usage.count import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from swarm.project.model import Session
    from swarm.project.world import World
    from swarm.sessions.values import AgentStatus, SessionStatus


def notify_user(world: World, found: Sequence[SessionStatus]) -> int:
    """Notify the user of every agent that newly entered a state of ``notify.states``; return their number."""
    news = list(_news(world, found))
    after.give_all(world, [one.session for one in found])
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
        if drawn := _drawn_again(now, seen):
            runfiles.write(str(run), runfiles.CALLED, {**seen, "detail": drawn})
            return False
        if status.state is State.WAITING:
            _tell_waiting(world, session, item, count)
        said = _tell_idle(world, session, item, seen, count) if status.state is State.IDLE else seen.get("said", "")
        runfiles.write(str(run), runfiles.CALLED, {**now, "times": count, "said": said})
    except (OSError, SwarmError):  # cleaned up meanwhile, or no space: a retry would fail again and again
        return False
    return status.state in world.settings.notify.states


def _drawn_again(now: Mapping[str, object], seen: Mapping[str, object]) -> str:
    """Return the dialog's question if the last look saw the same dialog, whole or in part; else nothing."""
    before, after = str(seen.get("detail") or ""), str(now.get("detail") or "")
    if not before or not after or not now["state"] == seen.get("state") == State.WAITING:
        return ""
    return after if after.startswith(f"{before}: ") else before if before.startswith(f"{after}: ") else ""


def _tell_waiting(world: World, session: Session, item: AgentStatus, count: int) -> None:
    """Publish the event to the queue of the agent's starter.

    Args:
        count: how often its state was a new one: it may wait for the same thing again.
    """
    agent, status = item.agent, item.status
    question = asked.open_questions(world).get((session.name, agent.name))
    approval = question.id if question else ""
    name = _name("waiting", session, item, f"{count}/{status.since_ms}", approval)
    kind, waiting = event_values.AGENT_WAITING, event_values.WAITING
    more: dict[str, int | str] = {"time_ms": status.since_ms, "approval": approval}
    events.publish(
        world, session, events.event(kind, agent.name, session.name, waiting, status.detail, name=name, **more)
    )


def _tell_idle(world: World, session: Session, item: AgentStatus, seen: Mapping[str, object], count: int) -> str:
    """Publish the end of a turn, with the agent's last text, to the queue of the agent's starter.

    A program that has only just started had no turn: it said nothing new, and was not seen to work.

    Args:
        seen: what was noted at the last look.

    Returns:
        What tells this text from others.
    """
    agent, status = item.agent, item.status
    text = _last_text(world, session, item)
    said = sha256(text.encode()).hexdigest()[:16] if text else ""
    if seen.get("state") in (State.WORKING, State.WAITING) or said not in ("", seen.get("said")):
        name = _name("idle", session, item, f"{count}/{status.since_ms}", said)
        kind, idle = event_values.AGENT_IDLE, event_values.IDLE
        more: dict[str, int | str] = {"time_ms": status.since_ms, "text": text[: event_values.MOST_TEXT]}
        event = events.event(kind, agent.name, session.name, idle, status.detail, name=name, **more)
        events.publish(world, session, event)
        after.finished(world, session, agent)
    return said


def _last_text(world: World, session: Session, item: AgentStatus) -> str:
    """Return the agent's last text from its program's record, made fit for a message."""
    transcript = open_transcript(source_of(world, session, item.agent))
    text = last_said(transcript.more()) if transcript else ""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _name(kind: str, session: Session, item: AgentStatus, *which: str) -> str:
    """Return an event's id; every process that notices the event computes the same one."""
    parts = (session.name, item.agent.name, session.generation_of(item.agent), item.pid, *which)
    return f"{kind}.{sha256('/'.join(map(str, parts)).encode()).hexdigest()[:16]}"


def _line(session: str, item: AgentStatus) -> str:
    """Return the notification as one line without control characters or tmux formats."""
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
    processes.run_aside([*words_of(command), _line(session, item)], {**world.environ, **told})
