"""Match a worktree to its ``.git/worktrees/`` entry, even after both were moved."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.project.layout import RECORD_COPY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.project.model import AdminDir, Agent
    from swarm.project.world import World


def own_admin(world: World, agent: Agent) -> AdminDir | None:
    """Return git's folder for an agent's own worktree, if it is the one that the record names.

    Whoever moves the project moves both; git still looks for the tree at its old place then.
    """
    if agent.shared:
        return None
    tree = world.layout.root / agent.worktree
    admin = world.git.admin_of(tree)
    if admin is not None or not agent.admin:
        return admin if admin is not None and (not agent.admin or admin.name == agent.admin) else None
    named = next((one for one in world.git.admin_dirs() if one.name == agent.admin), None)
    if named is None or _lives_elsewhere(world, named) or not _is_marked(world, named, tree):
        return None
    return named


def is_moved(admin: AdminDir, tree: Path) -> bool:
    """Whether git looks for the tree at another place than it is."""
    return admin.gitdir != str(tree / ".git")


def repair(world: World) -> str:
    """Return the command that lets git and moved worktrees find each other again, to be run in the main checkout."""
    return f"git worktree repair {shlex.quote(os.path.relpath(world.layout.base, world.layout.root))}/*"


def linked_within(tree: Path, admin: AdminDir | None, admins: Sequence[AdminDir]) -> tuple[str, ...]:
    """Return the other worktrees of the repository that lie inside a tree; *admins* are those of all."""
    there = {str(tree)} | ({os.path.dirname(admin.gitdir)} if admin is not None and admin.gitdir else set())
    inner = set()
    for top in (f"{path}/" for path in there):
        for one in admins:  # of hundreds of worktrees each is compared with each
            if one.gitdir.startswith(top) and (other := os.path.dirname(one.gitdir)).startswith(top):
                inner.add(other[len(top) :])
    return tuple(sorted(path for path in inner if files.exists(tree / path / ".git")))


def _lives_elsewhere(world: World, admin: AdminDir) -> bool:
    """Whether git finds the tree somewhere; in a copy of a project that is the original, which has its own."""
    if not admin.gitdir or not files.exists(Path(admin.gitdir).parent):
        return False
    pointer = world.git.pointer_of(Path(admin.gitdir).parent)
    return pointer is None or pointer.parent == admin.path.parent


def _is_marked(world: World, admin: AdminDir, tree: Path) -> bool:
    """Whether it is ours beyond its name: it holds our record, or the tree says so."""
    pointer = world.git.pointer_of(tree)
    by_tree = pointer is not None and (pointer.parent.name, pointer.name) == ("worktrees", admin.name)
    return by_tree or (admin.path / RECORD_COPY).is_file()
