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

from swarm.kit.errors import EnvironmentProblem, NoSpace, SwarmError
from swarm.project.errors import Locked
from swarm.tasks import history, places
from swarm.tasks.bench import PATIENCE
from swarm.tasks.settle import finish, settle
from swarm.tasks.values import RUNNING, FailureType, TaskFailure, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask


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
            _advance(bench, dispatch=dispatch)
    except Locked:
        return False
    return True


def settle_one(bench: Bench, task_id: str, *, dispatch: bool = True) -> AgentTask:
    """Return one task as it is now."""
    task = bench.store.get(task_id)
    if task.is_over:
        return task
    with contextlib.suppress(Locked), bench.store.acting(PATIENCE):
        _advance(bench, dispatch=dispatch)
    return bench.store.get(task_id)


def _advance(bench: Bench, *, dispatch: bool) -> None:
    settled = [settle(bench, task) for task in bench.store.unfinished()]
    for task_id in set(bench.store.open_ids()) - {task.id for task in settled}:
        history.close_half_made(bench, task_id)
    if any(task.is_over for task in settled):
        history.prune(bench)
    if dispatch:
        _dispatch(bench, [task for task in settled if not task.is_over])


def _dispatch(bench: Bench, tasks: Iterable[AgentTask]) -> None:
    """Start those that are due, as many as may run at once."""
    tasks = tuple(tasks)
    free = bench.world.settings.tasks.at_once - sum(task.state in RUNNING for task in tasks)
    now = time.time_ns() // 1_000_000
    for task in tasks:
        if free <= 0:
            return
        if task.state is TaskState.QUEUED and task.due_ms <= now:
            free -= start(bench, task).state is TaskState.WORKING


def start(bench: Bench, task: AgentTask) -> AgentTask:
    """Start a queued task; one that cannot be started fails, unless the disk or the machine is the reason.

    Raises:
        EnvironmentProblem, OSError: it is queued still, as far as the disk lets us say so.
    """
    try:
        return places.start(bench, task)
    except NoSpace:
        raise
    except SwarmError as problem:
        now = bench.store.get(task.id)
        if now.state is TaskState.STARTING:
            now = places.not_started(bench, now)
        if isinstance(problem, EnvironmentProblem) and not _is_final(problem):
            raise
        failure = TaskFailure(FailureType.NOT_STARTED, problem.message)
        return finish(bench, now, TaskState.FAILED, problem.message, failure=failure)


def _is_final(problem: EnvironmentProblem) -> bool:
    """Whether waiting does not help: a program that is not installed."""
    from swarm.programs.errors import ProgramMissing

    return isinstance(problem, ProgramMissing)


def next_due(bench: Bench) -> float:
    """Return in how many seconds the next queued task is due; a day without one."""
    now = time.time_ns() // 1_000_000
    due = [task.due_ms for task in bench.store.unfinished() if task.state is TaskState.QUEUED]
    return max(0.0, (min(due) - now) / 1000) if due else 86_400.0
