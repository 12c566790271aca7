"""The commands that supervisors run beside an agent's program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm.project.world import World


def chore(world: World, task: str, *words: str) -> list[str]:
    """Return the command for one of the tasks of ``swarm/chores.py``."""
    return [sys.executable, "-P", "-m", "swarm.chores", str(world.layout.root), task, *words]
