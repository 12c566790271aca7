"""Take-over: the conversation of a held task goes on in a pane, and back. One program has it at any time.

    idle ─► taking ─► taken ─► returning ─► idle

``taking`` and ``returning`` name the process that moves the conversation.  Where that process died, whoever looks next
concludes: the operation that starts the pane's program is committed or taken back as a whole, so the pane has the
conversation or the task has it; and a program that runs in the pane keeps it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.agents import running
from swarm.agents.launching import launch_request
from swarm.agents.view import View
from swarm.kit import files
from swarm.kit.errors import UsageProblem
from swarm.machine import processes
from swarm.project import names
from swarm.project.model import SHARED
from swarm.project.world import new_operation_id
from swarm.sessions import resume
from swarm.sessions.create import create, create_request
from swarm.tasks import launching, places
from swarm.tasks.bench import PATIENCE, program_of
from swarm.tasks.errors import NotReturned, TaskBusy, TaskInPane, TaskNotHeld, TaskNotIdle, TaskNotTaken, TaskOver
from swarm.tasks.folders import workspace
from swarm.tasks.values import InPane, Place, TaskState
from swarm.terminal.marks import panes_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from swarm.project.model import Agent, Session
    from swarm.tasks.bench import Bench
    from swarm.tasks.store import Store
    from swarm.tasks.values import AgentTask

_IDLE, _TAKING, _TAKEN, _RETURNING = TaskState.IDLE, TaskState.TAKING, TaskState.TAKEN, TaskState.RETURNING


# --- into a pane --------------------------------------------------------------------------------


def take(bench: Bench, task: AgentTask) -> AgentTask:
    """Move the conversation of an idle task into a pane. The caller holds no lock.

    Args:
        task: as it was a moment ago.

    Raises:
        SwarmError: nothing was moved.
        TaskNotIdle: it is not idle any more.
    """
    check(bench, task)
    with bench.store.acting(PATIENCE):
        task = bench.store.get(task.id)
        if task.state is not _IDLE:
            raise TaskNotIdle(f"cannot take {task.id}: it is {task.state}", state=str(task.shown))
        planned = bench.store.change(task, _TAKING, "taking", pane=_planned(task))
    try:
        with files.os_errors(f"cannot take {task.id}"), bench.changing(f"task {task.id}"):
            _open(bench, planned)
    except BaseException:
        with bench.store.acting(PATIENCE):
            conclude(bench, bench.store.get(task.id), mine=True)
        raise
    with bench.store.acting(PATIENCE):
        return _taken(bench, bench.store.get(task.id))


def check(bench: Bench, task: AgentTask) -> None:
    """Refuse a task that can never be taken over.

    Raises:
        TaskOver, TaskNotHeld, TaskInPane, UsageProblem
    """
    if task.is_over:
        raise TaskOver(f"cannot take {task.id}: it is {task.state}", final_state=str(task.state))
    if not task.hold:
        raise TaskNotHeld(f"cannot take {task.id}: it is not held, and ends with its turn")
    if task.pane is not None:
        raise TaskInPane(f"cannot take {task.id}: its conversation is in the pane of {task.pane.address}")
    if not program_of(task).speaks:
        raise UsageProblem(f"cannot take {task.id}: {task.program} has no conversation that could go on in a pane")
    if task.is_boxed and task.place is Place.SESSION:
        raise UsageProblem(f"cannot take {task.id}: it works in a box of its own, which no pane has")
    if bench.role(task.role).options.print:
        raise UsageProblem(f"cannot take {task.id}: its role {task.role} has `print`, so its agents have no dialog")


def _planned(task: AgentTask) -> InPane:
    in_tree = task.place is Place.WORKTREE
    session = task.session_id if in_tree else task.id[: names.MAX_LENGTH]
    me = os.getpid()
    start = processes.start_of(me) or 0
    return InPane(session, task.role or task.program, new_operation_id(), me, start, processes.boot_id())


def _open(bench: Bench, task: AgentTask) -> None:
    """Start the agent in its pane, in one operation."""
    world, pane = bench.world, _pane_of(task)
    session = world.sessions.get(pane.session)
    role = bench.role(task.role)
    if session is None:
        create.create(world, _request(bench, task, pane))
        return
    agent = session.agent(pane.agent)
    if agent is None or (task.place is Place.SESSION and agent.worktree != str(_folder(bench, task))):
        raise UsageProblem(
            f"cannot take {task.id}: session {pane.session} is another one", hint=f"swarm cleanup {pane.session}"
        )
    mine = agent._replace(conversation=task.conversation, print_mode=False)
    resume.take_over(world, session, mine, launch_request.role_for(mine, role), pane.operation)


def _request(bench: Bench, task: AgentTask, pane: InPane) -> create_request.Request:
    """Return the request of a session whose one agent works where the task does, in its conversation."""
    spec, role = names.AgentSpec(pane.agent, task.role), bench.role(task.role)
    given = launching.variables(bench.world, task) | bench.store.environment(task.id)
    wish = launch_request.LaunchRequest(
        task.program,
        task.command,
        env=((pane.agent, tuple(given.items())),),
        conversation=task.conversation,
        operation=pane.operation,
    )
    if task.model:
        wish = replace(wish, overrides=(("model", task.model),))
        wish, (changed,) = launch_request.overridden(bench.world, (spec,), (role,), wish)
        role = changed or role
    place = create_request.Place(_folder(bench, task), tree=SHARED)
    return create_request.Request(pane.session, (spec,), (role,), launch=wish, places=(place,))


def _folder(bench: Bench, task: AgentTask) -> Path:
    return workspace.of(bench.world.layout, task).work


def _taken(bench: Bench, task: AgentTask) -> AgentTask:
    return bench.store.change(task, _TAKEN, "taken", f"in the pane of {_pane_of(task).address}")


# --- and back -----------------------------------------------------------------------------------


def give_back(bench: Bench, task_id: str) -> AgentTask:
    """End the program in the pane, close that, and hold the task again. The caller holds no lock.

    Raises:
        TaskOver, TaskNotTaken
        NotReturned: the program would not end, and keeps the conversation.
    """
    with bench.store.acting(PATIENCE):
        task = conclude(bench, bench.store.get(task_id))
        if task.is_over:
            raise TaskOver(f"cannot give back {task_id}: it is {task.state}", final_state=str(task.state))
        if task.state is not _TAKEN:
            raise TaskNotTaken(f"cannot give back {task_id}: it is {task.state}, and in no pane")
        me = os.getpid()
        mine = _pane_of(task)._replace(pid=me, start=processes.start_of(me) or 0, boot_id=processes.boot_id())
        task = bench.store.change(task, _RETURNING, "returning", pane=mine)
    try:
        with files.os_errors(f"cannot give back {task_id}"), bench.changing(f"task {task_id}"):
            _close(bench, task)
    except BaseException:
        with bench.store.acting(PATIENCE):
            conclude(bench, bench.store.get(task_id), mine=True)
        raise
    with bench.store.acting(PATIENCE):
        return _returned(bench, bench.store.get(task_id))


def _close(bench: Bench, task: AgentTask) -> None:
    world, pane = bench.world, _pane_of(task)
    session = world.sessions.get(pane.session)
    agent = session.agent(pane.agent) if session is not None else None
    if session is None or agent is None:
        return
    left = running.stop(world, session, (agent,))
    if left or _runs(bench, session, agent):
        raise NotReturned(f"cannot give back {task.id}: the program in the pane of {pane.address} does not end")
    world.terminal.kill(one.id for one in panes_of(world, session.name) if one.agent == agent.name)


def _returned(bench: Bench, task: AgentTask, why: str = "") -> AgentTask:
    """Hold a task again, with the conversation that the pane's program had last."""
    task = replace(task, conversation=_last_conversation(bench, task) or task.conversation)
    done = bench.store.change(task, _IDLE, "returned", why, pane=None)
    places.note_conversation(bench, done)
    return done


def _last_conversation(bench: Bench, task: AgentTask) -> str:
    pane = _pane_of(task)
    return program_of(task).last_conversation(places.probe(bench, task, _run_dir(bench, pane)))


# --- what a crash left --------------------------------------------------------------------------


def conclude(bench: Bench, task: AgentTask, *, mine: bool = False) -> AgentTask:
    """Return a task whose conversation was being moved, as it is now. The caller holds the lock of the tasks.

    Args:
        mine: this process moved it, and has given up; else one that lives is left alone.
    """
    pane = task.pane
    if pane is None or (task.state is not _TAKEN and not mine and _is_alive(pane)):
        return task
    if task.state is _TAKEN:
        return task if _is_there(bench, pane) else _removed(bench, task)
    with bench.changing(f"task {task.id}"):  # which takes back what was not committed
        session = bench.world.sessions.get(pane.session)
        agent = session.agent(pane.agent) if session is not None else None
        if session is None or agent is None:
            return _given_up(bench, task)
        if task.state is _TAKING:
            return _taken(bench, task) if pane.operation in session.operations else _given_up(bench, task)
        if _runs(bench, session, agent):
            return bench.store.change(task, _TAKEN, "taken", "it was not given back")
    return _returned(bench, task, "the process that gave it back is gone")


def _given_up(bench: Bench, task: AgentTask) -> AgentTask:
    return bench.store.change(task, _IDLE, "returned", "no pane has it", pane=None)


def _removed(bench: Bench, task: AgentTask) -> AgentTask:
    """Hold a task again whose agent in the pane the user removed: the folder where it worked is there still."""
    returning = bench.store.change(task, _RETURNING, "returning", "its agent was removed")
    return _returned(bench, returning, "its agent was removed")


def _is_there(bench: Bench, pane: InPane) -> bool:
    session = bench.world.sessions.get(pane.session)
    return session is not None and session.agent(pane.agent) is not None


def _runs(bench: Bench, session: Session, agent: Agent) -> bool:
    return View(bench.world).status(session, agent).runs


def _is_alive(pane: InPane) -> bool:
    return pane.boot_id == processes.boot_id() and processes.is_alive(pane.pid, pane.start)


def _run_dir(bench: Bench, pane: InPane) -> Path:
    return bench.world.layout.run_folder(pane.session, pane.agent)


def _pane_of(task: AgentTask) -> InPane:
    if task.pane is None:
        raise AssertionError(f"{task.id} is in no pane")
    return task.pane


def refuse_others(store: Store, session: str, agents: Iterable[str]) -> None:
    """Refuse to start agents in panes of which a task has the conversation.

    Raises:
        TaskBusy
    """
    for task in store.unfinished():
        mine = {(task.session_id, task.role)} if task.place is Place.WORKTREE else set()
        mine |= {(task.pane.session, task.pane.agent)} if task.pane is not None else set()
        if task.state is not _TAKEN and mine & {(session, agent) for agent in agents}:
            raise TaskBusy(
                f"cannot start an agent of {session} in a pane: task {task.id} has its conversation",
                hint=f"take it over: swarm task take {task.id}",
                current_task=task.id,
            )
