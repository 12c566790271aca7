"""Agents whose task is held until others have finished theirs.

All agents of a start begin together, so that the start stays one transaction; the program of a held one begins
without a task.  Whoever labels the panes sees the end of each agent's turn.  The first one with its task is noted
beside the agent's other notes.  When all notes are there, the task comes as a message; its id makes two of them one.
An agent that ended otherwise has not finished: the task stays held until it does, or somebody releases the task.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from swarm.agents.errors import NotHeld
from swarm.bus.errors import IdTaken
from swarm.bus.message import POSTMASTER, Message
from swarm.kit.errors import SwarmError
from swarm.machine.run_folder import runfiles
from swarm.messages.inboxes import bus_of, post_own
from swarm.programs import processes
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
    if agent.after and not _has(run, session, agent, runfiles.TASK_GIVEN):
        return  # a turn about something else: its own task is held still
    runfiles.write(str(run), runfiles.FINISHED, {"run": session.generation_of(agent)})
    give_all(world, [session])


def give_all(world: World, sessions: Sequence[Session]) -> None:
    """Give each agent its task that no longer waits for another agent and has none yet."""
    for session in sessions:
        for one in session.agents:
            if one.after:
                with suppress(SwarmError, OSError):  # the next look tries it again
                    _give(world, session, one)


def awaited(world: World, session: Session, agent: Agent) -> tuple[str, ...]:
    """Return the agents that have yet to finish before this one gets its task."""
    if _has(_run(world, session, agent), session, agent, runfiles.TASK_GIVEN):
        return ()
    whole = world.sessions.get(session.name) or session  # a look at one agent has a session of that agent alone
    others = [other for name in agent.after if (other := whole.agent(name)) is not None]
    return tuple(one.name for one in others if not _has(_run(world, whole, one), whole, one, runfiles.FINISHED))


def held(session: Session, agent: Agent) -> tuple[str, ...]:
    """Return the addresses of the agents whose tasks are held until this one has finished."""
    return tuple(f"{one.name}@{session.name}" for one in session.agents if agent.name in one.after)


def why_held(world: World, session: Session, agent: Agent) -> str:
    """Say what the task of an agent waits for; empty when it has its task."""
    names = awaited(world, session, agent)
    if not names:
        return ""
    facts = {name: processes.facts(world.layout.run_folder(session.name, name)) for name in names}
    over = [name for name, one in facts.items() if one.pid and not (one.alive or one.supervised)]
    ended = f"; {', '.join(over)} ended before that: swarm pod release {agent.name}@{session.name}" if over else ""
    return f"its task waits for {', '.join(names)}{ended}"


def release(world: World, session: Session, agent: Agent) -> tuple[str, ...]:
    """Give an agent its task now, and return those for whom it waited.

    Raises:
        NotHeld: it has its task.
    """
    names = awaited(world, session, agent)
    if not names:
        raise NotHeld(f"cannot release the task of {agent.name}@{session.name}: it has its task already")
    _send(world, session, agent, f"your task; {', '.join(names)} did not finish", "Begin with your task.")
    return names


def _give(world: World, session: Session, agent: Agent) -> None:
    run = _run(world, session, agent)
    if _has(run, session, agent, runfiles.TASK_GIVEN) or awaited(world, session, agent):
        return
    subject = f"your task: {', '.join(agent.after)} finished"
    _send(world, session, agent, subject, "Begin with your task: the others have finished theirs.")


def _send(world: World, session: Session, agent: Agent, subject: str, otherwise: str) -> None:
    """Send a held task, once.

    Args:
        otherwise: its text, if no task was written down.
    """
    message = Message(
        to=f"{agent.name}@{session.name}",
        sender=POSTMASTER,
        type=TASK,
        id=f"task.{session.generation_of(agent)}.{agent.name}",
        subject=subject,
        body=whole_task(session.task, agent.task) or otherwise,
        generation=session.generation_of(agent),
    )
    with closing(bus_of(world)) as bus, suppress(IdTaken):  # then it was given before, in other words
        post_own(bus, message)
    runfiles.write(str(_run(world, session, agent)), runfiles.TASK_GIVEN, {"run": session.generation_of(agent)})


def _run(world: World, session: Session, agent: Agent) -> Path:
    return world.layout.run_folder(session.name, agent.name)


def _has(run: Path, session: Session, agent: Agent, note: str) -> bool:
    return (runfiles.read(str(run), note) or {}).get("run") == session.generation_of(agent)
