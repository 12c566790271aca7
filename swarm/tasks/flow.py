"""The way of all tasks: settle what is over, start what is due, remove what is old.

    accept ─► queued ─► starting ─► working ─► completed, failed, cancelled
                 ▲                     │
                 └── retry, requeued ──┘

Whoever looks does that; two at once do it one after the other, and each step once.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from swarm.kit import files, redaction
from swarm.kit.errors import NoSpace, SwarmError
from swarm.programs import turns
from swarm.project.errors import Locked
from swarm.sandbox.errors import SandboxUnavailable
from swarm.tasks import history, places, secrecy
from swarm.tasks.bench import PATIENCE
from swarm.tasks.settle import finish, settle
from swarm.tasks.values import RUNNING, FailureType, Place, TaskFailure, TaskState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask

    _Planned = tuple[AgentTask, turns.Turn]

_NOT_STARTED = FailureType.NOT_STARTED


def advance(bench: Bench, *, dispatch: bool = True, wait: float = 0.0) -> bool:
    """Settle every task that is not over, and start those that are due; return whether it was this process's turn.

    Args:
        dispatch: start tasks; else only settle.
        wait: seconds for the lock; another process that holds it does the same.
    """
    if not bench.store.open_ids():
        return True
    try:
        with bench.store.acting(wait):
            planned = _advance(bench, dispatch=dispatch)
    except Locked:
        return False
    for task, turn in planned:
        _start_in_worktree(bench, task, turn)
    return True


def tidy(bench: Bench) -> None:
    """Remove what the history does not keep any more, unless somebody is at work on tasks."""
    if bench.store.ids():
        with contextlib.suppress(Locked), bench.store.acting(0.0):
            history.prune(bench)


def settle_one(bench: Bench, task_id: str, *, dispatch: bool = True) -> AgentTask:
    """Return one task as it is now."""
    task = bench.store.get(task_id)
    if not task.is_over:
        advance(bench, dispatch=dispatch, wait=PATIENCE)
    return bench.store.get(task_id)


def _advance(bench: Bench, *, dispatch: bool) -> list[_Planned]:
    """Do all that the lock is needed for; return the starts that take their time."""
    settled = [_settled(bench, task) for task in bench.store.unfinished()]
    for task_id in set(bench.store.open_ids()) - {task.id for task in settled}:
        history.close_half_made(bench, task_id)
    if any(task.is_over for task in settled):
        history.prune(bench)
    return _dispatch(bench, [task for task in settled if not task.is_over]) if dispatch else []


def _settled(bench: Bench, task: AgentTask) -> AgentTask:
    """Settle a task; one with which that fails shall not hold up the others."""
    try:
        with files.os_errors(f"cannot settle {task.id}"):
            return settle(bench, task)
    except NoSpace:
        raise
    except SwarmError:
        return task


def _dispatch(bench: Bench, tasks: Sequence[AgentTask]) -> list[_Planned]:
    """Start those that are due, as many as may run at once; those in worktrees are planned only."""
    planned: list[_Planned] = []
    free = bench.world.settings.tasks.at_once - sum(task.state in RUNNING for task in tasks)
    now = _now_ms()
    for task in tasks:
        if task.state is TaskState.QUEUED and task.due_ms <= now and free > 0 and bench.may_start(task):
            one = _start(bench, task)
            free -= one is None or one[0].state in RUNNING
            planned += [one] if one is not None and one[0].state is TaskState.STARTING else []
    return planned


def _start(bench: Bench, task: AgentTask) -> _Planned | None:
    """Start a queued task in its folder, or plan it where that takes a worktree."""
    try:
        with files.os_errors(f"cannot start {task.id}"):
            now, turn = places.plan(bench, task)
            if now.place is Place.WORKTREE:
                return now, turn
            places.launch(bench, now, turn)
            places.begun(bench, now)
    except SwarmError as problem:
        return _given_up(bench, task.id, problem), turns.Turn("")
    return None


def _start_in_worktree(bench: Bench, task: AgentTask, turn: turns.Turn) -> None:
    """Carry out a planned start."""
    problem: SwarmError | None = None
    try:
        with files.os_errors(f"cannot start {task.id}"):
            places.launch(bench, task, turn)
    except SwarmError as error:
        problem = error
    with bench.store.acting(PATIENCE):
        if problem is None:
            places.begun(bench, task)
        else:
            _given_up(bench, task.id, problem)


def _given_up(bench: Bench, task_id: str, problem: SwarmError) -> AgentTask:
    """Fail a task that cannot be started; where the disk or another command is in the way, it waits."""
    now = bench.store.get(task_id)
    if now.state is TaskState.STARTING:
        now = places.not_started(bench, now, mine=True)
    if now.state is not TaskState.QUEUED:
        return now
    if isinstance(problem, NoSpace):
        raise problem
    if isinstance(problem, Locked):
        return now
    words = redaction.from_text(problem.message, secrecy.values(bench.store, task_id))
    why = TaskFailure(_NOT_STARTED, words)
    if isinstance(problem, SandboxUnavailable):
        why = TaskFailure(FailureType.SANDBOX, f"sandbox setup failed: {words}")
    return finish(bench, now, TaskState.FAILED, why.message, failure=why)


def next_due(bench: Bench) -> float:
    """Return in how many seconds the next queued task is due; a day without one."""
    now = _now_ms()
    due = [task.due_ms for task in bench.store.unfinished() if task.state is TaskState.QUEUED]
    return max(0.0, (min(due) - now) / 1000) if due else 86_400.0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
