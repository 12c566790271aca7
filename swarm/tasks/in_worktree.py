"""A task in a worktree: an ordinary session of one agent, which runs without a pane.

The transaction of its start commits the session's record with the operation that the task's record names as planned.
Killed before that commit, nothing of it is left; killed after it, the session's record shows that the program runs.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.agents.launching import launch_request
from swarm.agents.launching.unseen import Unseen
from swarm.project import names
from swarm.project.chore import chore
from swarm.sandbox import fresh
from swarm.sessions import resume
from swarm.sessions.create import create, create_request
from swarm.tasks.bench import GRACE, program_of
from swarm.tasks.folders import boxing
from swarm.terminal.marks import stamp_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from swarm.programs.turns import Turn
    from swarm.project.model import Session
    from swarm.roles.role import Role
    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask, TaskRun


def session_of(bench: Bench, task: AgentTask) -> Session | None:
    """Return the session of a task; None: it was not made yet, or removed."""
    return bench.world.sessions.get(task.session_id)


def tree_of(bench: Bench, task: AgentTask) -> Path:
    """Return the worktree of a task's agent."""
    return bench.world.layout.worktree(task.role, task.session_id)


def run_dir(bench: Bench, task: AgentTask) -> Path:
    """Return where the supervisor of its agent writes."""
    return bench.world.layout.run_folder(task.session_id, task.role)


def stamp(bench: Bench, task: AgentTask) -> str:
    """Return the mark in the environment of everything that its agent starts."""
    return stamp_of(task.session_id, task.role, bench.world.layout.root)


def is_begun(bench: Bench, task: AgentTask, run: TaskRun) -> bool:
    """Whether the session's record names the operation of a run: its gate is open."""
    session = session_of(bench, task)
    return session is not None and run.operation in session.operations


def start(bench: Bench, task: AgentTask, run: TaskRun, turn: Turn, talk: dict[str, Any]) -> None:
    """Make the session with its agent, or start the agent that it has.

    Args:
        talk: see ``places.talk_of``.

    Raises:
        SwarmError: nothing was started.
    """
    world = bench.world
    unseen = Unseen(
        operation=run.operation,
        text=turn.text,
        resume=turn.resume,
        again=turn.again,
        folder=os.fspath(bench.store.run_folder(task.id, run.operation)),
        timeout=task.timeout,
        grace=GRACE - program_of(task).interrupts,
        after=tuple(chore(world, "settle", task.id)),
        task=task.id,
        env=os.fspath(bench.store.environment_file(task.id)),
        id=turn.id,
        talk=json.dumps(talk) if talk else "",
    )
    with bench.changing(f"task {task.id}"):
        session = session_of(bench, task)
        boxing.require(bench, task)
        if session is None:
            try:
                create.create(world, _request(bench, task, unseen))
            finally:
                world.git.stop_looking()  # what it looked for in the background
            return
        agent = session.agents[0]._replace(conversation=task.conversation, print_mode=program_of(task).prints)
        role = launch_request.role_for(agent, bench.role(task.role))
        resume.take_turn(world, session, agent, role, unseen)


def take_in(bench: Bench, task: AgentTask) -> str:
    """Take in what a task's agent committed in its box; return in words why that is refused; empty: it is not."""
    session = session_of(bench, task) if task.is_boxed else None
    if session is None:
        return ""
    with bench.changing(f"task {task.id}"):
        refused = fresh.take_in(bench.world, [session], everything=True)
    return "".join(f"its commits stay in its box: {why}" for why in refused.values())


def _request(bench: Bench, task: AgentTask, unseen: Unseen) -> create_request.Request:
    spec, role = names.AgentSpec(task.role, task.role), bench.role(task.role)
    wish = launch_request.LaunchRequest(
        task.program,
        task.command,
        task.prompts[0],
        print_mode=program_of(task).prints,
        sandbox=True if task.box else None,
        decided=task.box,
        unseen=unseen,
    )
    roles: tuple[Role | None, ...] = (role,)
    if task.model:
        wish = replace(wish, overrides=(("model", task.model),))
        wish, roles = launch_request.overridden(bench.world, (spec,), roles, wish)
    return create_request.Request(task.session_id, (spec,), roles, launch=wish, setup=(role.options,))
