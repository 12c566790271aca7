"""All that acting on tasks needs, as one value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from swarm.programs import registry
from swarm.project.world import new_operation_id
from swarm.tasks.values import TaskRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from swarm.programs.base import Program
    from swarm.project.world import World
    from swarm.roles.role import Role
    from swarm.tasks.store import Store
    from swarm.tasks.values import AgentTask

#: How long the lock of the tasks is waited for.
PATIENCE = 30.0
#: From the first signal to the kill of a task's program; the supervisor keeps to it. Ten seconds are promised.
GRACE = 9.5


class Bench(NamedTuple):
    """What acting on tasks needs.

    Attributes:
        role: finds a role by its name.
        changing: holds the lock of the repository for a command, with what crashed before brought to an end.
        may_start: whether this process may start a task.
    """

    world: World
    store: Store
    role: Callable[[str], Role]
    changing: Callable[[str], AbstractContextManager[None]]
    may_start: Callable[[AgentTask], bool]


def program_of(task: AgentTask) -> Program:
    """Return the agent program of a task."""
    return registry.program(task.program, task.command)


def new_run(task: AgentTask, *, resumed: bool) -> tuple[AgentTask, TaskRun]:
    """Return a task with one more run, which is not started."""
    run = TaskRun(new_operation_id(), task.turn, resumed)
    return replace(task, runs=(*task.runs, run), operation=run.operation), run


def with_run(task: AgentTask, run: TaskRun) -> tuple[TaskRun, ...]:
    """Return the runs of a task with one of them changed."""
    return tuple(run if one.operation == run.operation else one for one in task.runs)
