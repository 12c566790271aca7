"""The trash folder: a worktree is renamed into it before it is deleted.

That is swarm's own trash; or, where the folder of the worktrees is on another file system, a hidden folder in it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.project.layout import TRASH_BESIDE
from swarm.worktrees import deletion, pool

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.world import World


def put(world: World, operation: str, tree: Path, name: str) -> Path:
    """Move a tree into the trash of an operation, and return where it is then; it may not be there any more."""
    target = world.layout.trash_folder(operation) / name
    for beside in (world.layout.trash_beside, _of_run(world)):
        try:
            files.rename_within(tree, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            target = beside / operation / name
            files.make_folders(target.parent, 0o700)
        else:
            return target
    files.rename_within(tree, target)
    return target


def find(world: World, operation: str, name: str) -> Path:
    """Return where a tree was put; where it would be put first, if it is in no trash."""
    places = [folder / operation / name for folder in _folders(world)]
    return next((one for one in places[1:] if files.exists(one)), places[0])


def empty_beside(world: World, operation: str) -> None:
    """Delete an operation's trash next to the worktrees, so that their folder can go with the last of them."""
    for folder in _folders(world)[1:]:
        if files.is_folder(folder):
            with contextlib.suppress(PermissionError):  # files of another user, say a container's, must not block swarm
                files.remove_tree(folder / operation)
            files.remove_empty(folder)


def empty(world: World, operation: str) -> None:
    """Delete all that an operation has put into the trash."""
    with contextlib.suppress(PermissionError):
        files.remove_tree(world.layout.trash_folder(operation))
    files.remove_empty(world.layout.trash)
    empty_beside(world, operation)


def sweep(world: World, *, wait: bool) -> None:
    """Delete the trash of operations that are over, and a folder for it that is empty.

    Args:
        wait: until it is deleted; else a process does it that outlives this one.
    """
    rules = world.settings.worktrees
    pool.sweep(world.layout, most=rules.pool, size=rules.pool_size, age_ms=rules.pool_age)
    over = deletion.over(world.layout)
    for operation in over:
        deletion.look_again(world.layout, operation)
    for name in left(world):
        if name in over and not wait:
            empty_beside(world, name)
        else:
            empty(world, name)
    if not wait:
        deletion.start(world.layout)
    for folder in _folders(world):
        if folder.is_dir():
            files.remove_empty(folder)


def drain_pool(world: World) -> int:
    """Delete all worktrees in the pool, also those on their way into it; return how many there were."""
    deletion.park_no_more(world.layout)
    names = pool.await_all(world.layout)
    pool.drain(world.layout, names)
    sweep(world, wait=not world.settings.cleanup.background)
    return len(names)


def left(world: World) -> tuple[str, ...]:
    """Return the operations with files in the trash."""
    # Behind a link is nothing of ours; what needs the folder says that one is in the way.
    there = filter(files.is_folder, _folders(world))
    return tuple(dict.fromkeys(name for folder in there for name in os.listdir(folder)))


def stays(world: World, operation: str) -> tuple[Path, ...]:
    """Return the part of an operation's trash that could not be deleted."""
    return tuple(folder / operation for folder in _folders(world) if files.exists(folder / operation))


def _folders(world: World) -> tuple[Path, Path, Path]:
    return world.layout.trash, world.layout.trash_beside, _of_run(world)


def _of_run(world: World) -> Path:
    """Return the trash next to the worktrees of ``swarm run``, whose folder may be on a third file system."""
    return world.swarm_dir / "worktrees" / TRASH_BESIDE
