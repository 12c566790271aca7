"""Agents whose task is held until others have finished theirs.

All agents of a start begin together, so that the start stays one transaction; the program of a held one begins
without a task.  Whoever labels the panes sees the end of each agent's turn.  The first one with its task is noted
beside the agent's other notes.  When all notes are there, the task comes as a message; its id makes two of them one.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from swarm.bus.message import POSTMASTER, Message
from swarm.kit.errors import SwarmError
from swarm.machine.run_folder import runfiles
from swarm.messages.inboxes import bus_of, post_own
from swarm.project.model import whole_task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.project.model import Agent, Session
    from swarm.project.world import World

TASK = "task"


def finished(world: World, session: Session, agent: Agent) -> None:
    """Note that an agent's turn is over, and give the agents that waited for it their tasks."""
    if not any(agent.name in one.after for one in session.agents):
        return
    run = _run(world, session, agent)
    if agent.after and not _has(run, session, agent, runfiles.GIVEN):
        return  # a turn about something else: its own task is held still
    runfiles.write(str(run), runfiles.FINISHED, {"run": session.generation_of(agent)})
    give_all(world, [session])


def give_all(world: World, sessions: Sequence[Session]) -> None:
    """Give their tasks to all agents that wait for nobody any more and have none yet."""
    for session in sessions:
        for one in session.agents:
            if one.after:
                with suppress(SwarmError, OSError):  # the next look tries it again
                    _give(world, session, one)


def awaited(world: World, session: Session, agent: Agent) -> tuple[str, ...]:
    """Return the agents that have yet to finish before this one gets its task."""
    if _has(_run(world, session, agent), session, agent, runfiles.GIVEN):
        return ()
    whole = world.sessions.get(session.name) or session  # a look at one agent has a session of that agent alone
    others = [other for name in agent.after if (other := whole.agent(name)) is not None]
    return tuple(one.name for one in others if not _has(_run(world, whole, one), whole, one, runfiles.FINISHED))


def _give(world: World, session: Session, agent: Agent) -> None:
    run = _run(world, session, agent)
    if _has(run, session, agent, runfiles.GIVEN) or awaited(world, session, agent):
        return
    body = whole_task(session.task, agent.task) or "Begin with your task: the others have finished theirs."
    message = Message(
        to=f"{agent.name}@{session.name}",
        sender=POSTMASTER,
        type=TASK,
        id=f"task.{session.generation_of(agent)}.{agent.name}",
        subject=f"your task: {', '.join(agent.after)} finished",
        body=body,
        generation=session.generation_of(agent),
    )
    with closing(bus_of(world)) as bus:
        post_own(bus, message)
    runfiles.write(str(run), runfiles.GIVEN, {"run": session.generation_of(agent)})


def _run(world: World, session: Session, agent: Agent) -> Path:
    return world.layout.run_folder(session.name, agent.name)


def _has(run: Path, session: Session, agent: Agent, note: str) -> bool:
    return (runfiles.read(str(run), note) or {}).get("run") == session.generation_of(agent)
