"""The step of the pool: new worktrees are parked ones, looked at once more."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.git.errors import GitFailed
from swarm.git.shortcuts import register
from swarm.kit import files
from swarm.kit.words import count
from swarm.worktrees import deletion, pool
from swarm.worktrees.saved import aside
from swarm.worktrees.steps.step import Step
from swarm.worktrees.steps.tree_steps import old_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.project.world import World
    from swarm.worktrees.pool import Parked


@dataclass(frozen=True, slots=True)
class TakeParked(Step):
    """Put parked worktrees in the place of new ones, which are registered and have no files yet.

    Where anything is out of the ordinary the new worktree stays without files, and is filled as all others.

    Attributes:
        trees: (path, name in the pool) each.
        commit: where they are.
        content: its tree.
    """

    trees: tuple[tuple[str, str], ...]
    commit: str
    content: str

    def do(self, world: World) -> None:
        if not world.git.copies_all(self.content):
            return
        world.progress(f"{count(len(self.trees), 'worktree')} of the pool")
        taken = [(Path(tree), one) for tree, name in self.trees if (one := _take(world, Path(tree), name)) is not None]
        said = world.git.differences([tree for tree, _ in taken])
        for (tree, one), told in zip(taken, said, strict=True):
            if told is not None and _is_as_parked(told, one.item["park"]):
                self._make_ready(world, tree, one)
            else:
                _keep(world, tree, one)

    def _make_ready(self, world: World, tree: Path, one: Parked) -> None:
        """Remove what was the last session's, and go to the commit."""
        files.write_new(one.checked, b"")
        wish = one.item["park"]
        for path in wish["placed"]:
            files.unlink_if_there(tree / path)
        away = world.layout.trash_folder(self.operation)
        for number, path in enumerate(wish["dropped"]):
            files.rename_if_there(tree / path, away / f"{tree.name}.{number}.dropped")
        admin = world.git.pointer_of(tree)
        if admin is not None and one.content == self.content:
            register.note_filled(admin, self.commit)
        else:
            world.git.reset(tree, old_ns())

    def undo_files(self, world: World) -> None:
        for path, name in self.trees:
            tree, one = Path(path), pool.find(world.layout, name)
            if one is None or files.exists(one.tree) or not _is(tree, one):
                continue
            admin = world.git.pointer_of(tree)
            if files.exists(one.checked):  # AddWorktree would look for work in it: in whatever was not in the commit
                away = world.layout.trash_folder(self.operation)
                files.make_folders(away)
                files.rename_within(tree, away / f"{tree.name}.parked")
                continue
            if admin is not None and not files.exists(one.own_index):
                files.rename_within(admin / "index", one.own_index)
            files.unlink_if_there(tree / ".git")
            files.rename_within(tree, one.tree)

    def say(self) -> str:
        return f"take {count(len(self.trees), 'worktree')} of the pool, where nothing is unusual"


def _take(world: World, tree: Path, name: str) -> Parked | None:
    one, admin = pool.find(world.layout, name), world.git.pointer_of(tree)
    if one is None or admin is None or not _is(one.tree, one) or stat.S_IMODE(os.stat(tree).st_mode) != one.bits:
        return None
    return one if register.replace_by(tree, one.tree, one.own_index, admin) else None


def _is(tree: Path, one: Parked) -> bool:
    """Whether this is the folder that was parked."""
    return files.is_folder(tree) and os.stat(tree).st_ino == one.inode


def _is_as_parked(told: bytes, wish: dict[str, Any]) -> bool:
    """Whether git finds no file that has changed since, and none that was not there."""
    known: Sequence[str] = (*wish["placed"], *wish["dropped"], *wish["kept"])
    below = tuple(f"{path}/" for path in known)
    for item in filter(None, told.split(b"\0")):
        kind, path = item[:2], os.fsdecode(item[3:])
        if kind not in (b"??", b"!!"):
            if kind[1:] != b" ":  # the other letter says that the commit is another one
                return False
        elif path not in known and not path.startswith(below):
            return False
    return True


def _keep(world: World, tree: Path, one: Parked) -> None:
    """Keep a tree whole that somebody changed in the pool; the worktree begins again, without files."""
    kept = world.layout.salvage_folder(one.item["session"], one.item["agent"], one.item["operation"])
    admin = world.git.pointer_of(tree)
    aside.keep_whole(tree, None, kept)
    if admin is None or files.exists(tree):
        raise GitFailed(f"cannot create the worktree {tree.name}: cannot keep what was in it")
    register.begin_again(tree, admin)
    deletion.tell(
        world.layout, one.item["operation"], {**one.item, "verb": "start"}, f"changed in the pool: kept whole in {kept}"
    )
