"""Start stopped agents again, in the same worktrees."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from swarm.agents import event_values, events
from swarm.agents.launching import launch, launch_checks, launch_request
from swarm.agents.view import View
from swarm.callers import parents
from swarm.kit.errors import SwarmError, raise_all
from swarm.machine.processes import boot_id
from swarm.programs import processes
from swarm.programs.status import State
from swarm.project import codec
from swarm.project import layout as places
from swarm.project.model import whole_task
from swarm.project.world import in_session, new_operation_id
from swarm.sandbox import check as box_check
from swarm.sandbox import steps as box_steps
from swarm.worktrees import transaction
from swarm.worktrees.errors import WorktreeNotFound
from swarm.worktrees.steps import file_steps, inbox_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarm.agents.launching.unseen import Unseen
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role

#: How long a supervisor may take beyond the grace, and how often it is looked at.
_AFTER_GRACE, _LOOK_EVERY = 1.0, 0.05


def finished(world: World, session: Session, agents: Sequence[Agent], role: Callable[[str], Role]) -> tuple[Agent, ...]:
    """Return agents that finished their task in print mode and need no resume."""
    view = View(world)
    done = [a for a in agents if view.status(session, a).state is State.DONE and view.facts(session, a).prints]
    return tuple(a for a in done if launch_request.options_for(a, role(a.role)).print)


def resume(
    world: World, session: Session, agents: Sequence[Agent], role: Callable[[str], Role], *, anew: bool = False
) -> tuple[str, ...]:
    """Start again the programs that do not run, in the same worktrees; all of them or none.

    Args:
        anew: those in print mode do their task anew instead of going on with it.

    Returns:
        The names of the agents that were started.
    """
    world = in_session(world, session)
    _await_closed(world, session, agents)
    view = View(world)
    wanted = [a for a in agents if a.program and not view.status(session, a).runs]
    told = refuse_start(world, session, wanted, role)
    if not wanted:
        return ()
    if anew:
        told = [(_with_new_conversation(a, r), r) for a, r in told]
    _start_again(world, session, told, "resume", anew=anew)
    return tuple(agent.name for agent in wanted)


def run_again(world: World, session: Session, agent: Agent, role: Role) -> None:
    """Start a stopped agent anew in its place, by its present record.

    Raises:
        SwarmError: nothing was started, and its record is as it was.
    """
    world = in_session(world, session)
    _await_closed(world, session, (agent,))
    _start_again(world, session, [(agent, role)], "run", fresh=True)


def take_turn(world: World, session: Session, agent: Agent, role: Role, turn: Unseen) -> None:
    """Start an agent for another turn without a pane.

    Raises:
        SwarmError: nothing was started, and its record is as it was.
    """
    world = in_session(world, session)
    _start_again(world, session, [(agent, role)], "task", turn=turn)


def take_over(world: World, session: Session, agent: Agent, role: Role, operation: str) -> None:
    """Start an agent that had turns without a pane in one, in its conversation.

    Args:
        operation: the one that does it; it is known before.

    Raises:
        SwarmError: nothing was started, and its record is as it was.
    """
    world = in_session(world, session)
    _start_again(world, session, [(agent, role)], "take", operation=operation)


def _start_again(
    world: World,
    session: Session,
    told: Sequence[tuple[Agent, Role]],
    verb: str,
    *,
    anew: bool = False,
    fresh: bool = False,
    turn: Unseen | None = None,
    operation: str = "",
) -> None:
    """Start the programs of these agents in one operation, which also writes their new records."""
    operation = operation or (turn.operation if turn else new_operation_id())
    now = {agent.name: agent for agent, _ in told}
    agents = tuple(now.get(one.name, one) for one in session.agents)
    record = session._replace(operations=(*session.operations, operation), agents=agents)
    how: dict[str, Any] = {"resume": True, "anew": anew, "fresh": fresh, "beside": session.beside, "unseen": turn}
    how["parent"] = parents.heir(world, session)
    todo = (
        *box_steps.made(world, operation, session.name, tuple(now.values())),
        *launch.start_steps(world, operation, session.name, told, session.task, **how),
        file_steps.WriteRecord(operation, codec.session_to_bytes(record).decode("ascii")),
    )
    started, boot = time.time_ns(), boot_id()
    refs = (places.op_ref(operation),)
    transaction.run(world, transaction.Operation(operation, verb, session.name, started, boot, todo, refs))
    inbox_steps.declare(world, session.name, list(now))
    if session.is_child:
        _tell(world, session, tuple(now), operation)


def _tell(world: World, session: Session, names: Sequence[str], operation: str) -> None:
    """Tell the parent of spawned agents that they were started again; they run, whatever becomes of that."""
    kind, restarted = event_values.AGENT_RESTARTED, event_values.RESTARTED
    made = [events.event(kind, one, session.name, restarted, "", name=f"restarted.{operation}.{one}") for one in names]
    with suppress(SwarmError, OSError):
        events.publish(world, session, *(one._replace(time_ms=time.time_ns() // 1_000_000) for one in made))


def _await_closed(world: World, session: Session, agents: Sequence[Agent]) -> None:
    """Wait for the end of programs whose panes are gone: their supervisors give them the grace of a stop.

    Programs in the panes of a server that swarm cannot reach go on; nobody waits for these.
    """
    view = View(world)
    folders = []
    for agent in agents:
        facts = view.facts(session, agent)
        closed = (facts.alive or facts.supervised) and view.pane(session, agent) is None
        if closed and not world.terminal.lost_server(facts.supervisor)[0]:
            folders.append(world.layout.run_folder(session.name, agent.name))
    deadline = time.monotonic() + world.settings.agents.stop_grace + _AFTER_GRACE
    while folders and time.monotonic() < deadline:
        seen = [(folder, processes.facts(folder)) for folder in folders]
        folders = [folder for folder, facts in seen if facts.alive or facts.supervised]
        if folders:
            time.sleep(_LOOK_EVERY)


def refuse_start(
    world: World, session: Session, wanted: Sequence[Agent], role: Callable[[str], Role]
) -> list[tuple[Agent, Role]]:
    """Refuse agents that could not be started again; else return each agent with its present role."""
    world = in_session(world, session)
    problems: list[SwarmError] = [
        WorktreeNotFound(
            f"the {'folder' if agent.shared else 'worktree'} of {agent.name} is gone: "
            f"{world.layout.root / agent.worktree}",
            hint=f"remove what is left of it with `swarm worktree remove {agent.name}@{session.name} --force`",
        )
        for agent in wanted
        if not (world.layout.root / agent.worktree).is_dir()
    ]
    for agent in {(a.program, a.command): a for a in wanted}.values():
        wish = launch_request.LaunchRequest(agent.program, agent.command)
        problems += [p for p in launch_checks.problems(world, wish) if str(p) not in map(str, problems)]
    if any(agent.is_boxed for agent in wanted):
        problems += box_check.problems(world.layout.state, world.environ)
    raise_all(f"cannot resume session {session.name}", problems)
    told = [(agent, launch_request.role_for(agent, role(agent.role))) for agent in wanted]
    refused = [p for a, r in told for p in launch_checks.refusals(world, _wish_of(a, session), r, placed=a.shared)]
    raise_all(f"cannot resume session {session.name}", refused)
    return told


def _wish_of(agent: Agent, session: Session) -> launch_request.LaunchRequest:
    task = whole_task(session.task, agent.task)
    return launch_request.LaunchRequest(agent.program, agent.command, task, print_mode=agent.print_mode)


def _with_new_conversation(agent: Agent, role: Role) -> Agent:
    """Return the agent with another conversation, if it is to do its task anew: programs take no id twice."""
    fresh = launch_request.options_for(agent, role).print and agent.conversation
    return agent._replace(conversation=str(uuid4())) if fresh else agent
