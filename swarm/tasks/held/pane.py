"""A pane that follows a task. It belongs to no agent; closing it changes nothing about the task."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from swarm.project.world import new_operation_id
from swarm.terminal.marks import FOLLOWERS, panes_of, repository_mark
from swarm.terminal.values import PanePlan

if TYPE_CHECKING:
    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask


def follow(bench: Bench, task: AgentTask) -> str:
    """Open such a pane, or take the one that there is; return its id."""
    world = bench.world
    plan = PanePlan(task.id, world.layout.root, (sys.executable, "-P", "-m", "swarm", "task", "attach", task.id))
    there = next((one for one in panes_of(world, FOLLOWERS) if one.agent == task.id), None)
    if there is not None and there.dead:
        world.terminal.respawn(there.id, plan)
    if there is not None:
        world.terminal.select(there.id)
        return there.id
    mark = repository_mark(world.layout.root)
    opened = world.terminal.open(mark, new_operation_id(), FOLLOWERS, [plan], world.settings.tmux.panes_per_window)
    world.terminal.select(opened[task.id])
    return opened[task.id]
