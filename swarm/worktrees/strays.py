"""Folders below that of the worktrees which are in no session, and no worktree to git."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.project import layout as places
from swarm.project.world import new_operation_id
from swarm.worktrees import transaction
from swarm.worktrees.errors import WorkAtRisk
from swarm.worktrees.steps.file_steps import remove_base

if TYPE_CHECKING:
    from collections.abc import Iterator
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


def refuse(world: World, tree: Path) -> None:
    """Refuse a folder at a worktree's place that swarm may not remove; an empty place is fine.

    Raises:
        WorkAtRisk
    """
    if not files.exists(tree):
        return
    if tree.is_symlink() or not tree.is_dir():
        what, hint = "a link" if tree.is_symlink() else "a file", f"look at it, then: rm {shlex.quote(str(tree))}"
    elif world.git.admin_of(tree) is not None:
        what = "a worktree of git without a record of swarm"
        hint = f"commit what is in it, then: git worktree remove {shlex.quote(str(tree))}"
    else:
        what, hint = "a repository", f"move it away: mv {shlex.quote(str(tree))} PATH"
    raise WorkAtRisk(f"nothing was removed: {tree} is {what}, and in no session", hint=hint, agents=())


def sweep(world: World, *, force: bool, dry_run: bool = False) -> Iterator[str]:
    """Report folders of no session below the worktrees' folder; with *force* remove plain ones.

    Not where git tracks files there: then the folder is the user's.  The caller holds the lock.
    """
    known = {agent.worktree.rpartition("/")[2] for session in world.sessions.all() for agent in session.agents}
    ours = {".gitignore", places.TRASH_BESIDE, *known}
    base = world.layout.base
    left = [base / name for name in sorted(os.listdir(base)) if name not in ours] if base.is_dir() else []
    if not left:
        return
    force = force and not world.git.tracks(base)
    for tree in left:
        if not force or not is_stray(world, tree):
            plain = " (--force moves it into the salvage)" if not force and is_stray(world, tree) else ""
            yield f"{tree} is in no session and stays{plain}; see `swarm worktree list`"
        elif dry_run:
            yield f"{tree} is in no session and would be removed"
        else:
            aside = remove(world, tree, force=True)
            yield f"{tree} was in no session and is removed: {told(aside)}"
    if force and not dry_run:
        remove_base(world, base)


def told(aside: Path | None) -> str:
    """Return in words where the content of a removed folder went."""
    return "it was empty" if aside is None else f"its content is in {aside}"


def remove(world: World, tree: Path, *, force: bool) -> Path | None:
    """Remove one; move its content aside and return the new place. The caller holds the lock.

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
