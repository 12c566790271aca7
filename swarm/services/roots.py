"""Which swarm directory servers belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.project.swarm_dir import dirs

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.world import World


def root_of(world: World, *, make: bool = False) -> Path:
    """Return the swarm directory of servers: the one that a variable names, else that of the repository.

    Args:
        make: make an empty folder that ``SWARM_ROOT`` names into one.

    Raises:
        SwarmDirProblem: what the variable names is none.
    """
    if not (world.environ.get("SWARM_DIR") or world.environ.get("SWARM_ROOT")):
        return world.layout.state
    look = dirs.resolve_dir if make else dirs.find_dir
    return look(environ=world.environ, cwd=world.layout.root) or world.layout.state
