"""Hide a file from git in swarm's worktrees only.

A name that is private by convention (``CLAUDE.local.md``) is hidden by a line in the repository's
``info/exclude``.  A name that the project may want for itself (``CLAUDE.md``) must stay visible
everywhere else, so it is hidden by a setting of the one worktree: git's ``extensions.worktreeConfig``
with a ``core.excludesFile`` that starts as a copy of the user's own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.errors import GitFailed
from swarm.kit import files as fsio
from swarm.worktrees.steps.file_steps import HideInstructions
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.project.world import World

#: Left in ``.swarm/`` while the setting in the repository's configuration is ours to take back.
_NOTE = "worktree-config"


def is_private(file: str) -> bool:
    """Whether a name is private by convention, so that hiding it everywhere takes nothing from the project."""
    return ".local." in file


@dataclass(frozen=True, slots=True)
class HideInWorktrees(Step):
    """Hide a file in some worktrees.

    Attributes:
        enabled: git's per-worktree configuration was in use before.
    """

    file: str
    trees: tuple[str, ...]
    enabled: bool

    def do(self, world: World) -> None:
        """Make the change."""
        if not self.enabled:
            fsio.write_atomic(world.layout.state / _NOTE, b"swarm turned extensions.worktreeConfig on\n")
            world.git.use_worktree_config(wanted=True)
        for tree in self.trees:
            _exclude(world, Path(tree), (self.file,))

    def undo(self, world: World) -> None:
        """Turn the setting off again if no worktree needs it."""
        turn_off(world)

    def say(self) -> str:
        """Describe the step for a dry run."""
        return f"hide {self.file} by a setting of each worktree"


def _exclude(world: World, tree: Path, files: Sequence[str]) -> None:
    admin = world.git.admin_of(tree)
    if admin is None:
        raise GitFailed(f"cannot hide {', '.join(files)} in {tree.name}: git did not register it")
    world.git.exclude_in_worktree(admin, *files)


def hide_in(world: World, tree: Path, files: Sequence[str]) -> None:
    """Hide files in one worktree, within a transaction that ends or begins again with `turn_off`."""
    if not world.git.uses_worktree_config():
        HideInWorktrees("", "", (), enabled=False).do(world)
    _exclude(world, tree, files)


def everywhere(world: World, operation: str, file: str) -> HideInstructions:
    """Return the step that hides a file by a line in the repository's ``info/exclude``."""
    exclude = world.git.common / "info" / "exclude"
    there = exclude.is_file() and b"/" + os.fsencode(file) in fsio.read_small(exclude).splitlines()
    return HideInstructions(operation, file, str(exclude), exclude.is_file(), there)


def steps_before(world: World, operation: str, file: str) -> Iterator[Step]:
    """Yield the steps that hide a private name; they run before any file is placed."""
    if is_private(file):
        yield everywhere(world, operation, file)


def steps_within(world: World, operation: str, file: str, trees: tuple[str, ...]) -> Iterator[Step]:
    """Yield the steps that hide any other name, to run after the worktrees exist."""
    if not is_private(file):
        yield HideInWorktrees(operation, file, trees, world.git.uses_worktree_config())


def hide_now(world: World, file: str, tree: Path) -> None:
    """Hide a file in a worktree outside of a transaction."""
    for step in (*steps_before(world, "", file), *steps_within(world, "", file, (str(tree),))):
        step.do(world)


def turn_off(world: World) -> None:
    """Take the setting out of the repository's configuration when swarm put it there and no session is left."""
    note = world.layout.state / _NOTE
    if not fsio.exists(note) or world.sessions.names():
        return
    in_use = any(fsio.exists(admin.path / "config.worktree") for admin in world.git.admin_dirs())
    if not in_use and not fsio.exists(world.git.common / "config.worktree"):
        world.git.use_worktree_config(wanted=False)
    fsio.unlink_if_there(note)
