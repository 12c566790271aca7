"""Folders below that of the worktrees which are in no session, and no worktree to git."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.project.world import new_operation_id
from swarm.worktrees import transaction
from swarm.worktrees.errors import WorkAtRisk

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.world import World


def is_stray(world: World, tree: Path) -> bool:
    """Whether a path is such a folder: a plain one, directly below that of the worktrees, and no repository."""
    return (
        tree.parent == world.layout.base
        and files.is_folder(tree)
        and not files.exists(tree / ".git")
        and world.git.admin_of(tree) is None
        and all(world.layout.root / agent.worktree != tree for one in world.sessions.all() for agent in one.agents)
    )


def check(tree: Path, *, force: bool) -> None:
    """Refuse to remove one in which something is.

    Raises:
        WorkAtRisk
    """
    if os.listdir(tree) and not force:
        hint = f"--force moves it into the salvage; or move it yourself: mv {shlex.quote(str(tree))} PATH"
        raise WorkAtRisk(f"nothing was removed: {tree} is in no session, and it has content", hint=hint, agents=())


def remove(world: World, tree: Path, *, force: bool) -> Path | None:
    """Remove one; what is in it is moved aside, and where to is returned. The caller holds the lock.

    Raises:
        WorkAtRisk: it has content, and *force* was not given.
    """
    check(tree, force=force)
    operation = new_operation_id()
    aside = None
    if not files.remove_empty(tree):
        aside = world.layout.salvage / "stray" / operation / tree.name
        files.make_folders(aside.parent, 0o700)
        files.rename_if_there(tree, aside)
    outcome = "removed" if aside is None else f"moved to {aside}"
    transaction.note(world, operation, "worktree remove", "", f"{tree.name} without a session: {outcome}")
    return aside
