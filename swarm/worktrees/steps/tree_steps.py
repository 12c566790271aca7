"""The steps of worktrees: register, fill, bring back, lock and verify them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.errors import GitFailed
from swarm.kit import files
from swarm.kit.words import count
from swarm.project import layout as places
from swarm.worktrees import trash
from swarm.worktrees.errors import WorktreeExists
from swarm.worktrees.steps.step import Step, stamp

if TYPE_CHECKING:
    from swarm.project.model import AdminDir
    from swarm.project.world import World


@dataclass(frozen=True, slots=True)
class AddWorktree(Step):
    """Register one worktree, without files.

    Attributes:
        tree: absolute path.
        branch: checked out; empty for a detached commit.
        taken: names of admin folders that were there before and are not ours.
        salvaged: everything that will be in it is also in a salvage entry.
        anyway: git believes that the branch is checked out in a worktree that is gone.
    """

    tree: str
    branch: str
    commit: str
    taken: tuple[str, ...]
    salvaged: bool = False
    anyway: bool = False

    def do(self, world: World) -> None:
        tree = Path(self.tree)
        if files.exists(tree):
            raise WorktreeExists(f"cannot create the worktree {tree.name}: {tree} is already there", details=str(tree))
        world.progress(f"worktree {tree.name}")
        aside = world.layout.trash_folder(self.operation)
        reason = stamp(self.operation)
        world.git.add_worktree(
            tree, branch=self.branch, commit=self.commit, reason=reason, aside=aside, anyway=self.anyway
        )

    def undo_files(self, world: World) -> None:
        tree = Path(self.tree)
        aside = world.layout.trash_folder(self.operation)
        files.make_folders(aside)
        mine = [admin for admin in world.git.admin_dirs() if self._is_ours(admin)]
        if (mine and self._tree_is_ours(world, tree, mine)) or _is_husk(world, tree):
            trash.put(world, self.operation, tree, f"{tree.name}.tree")
        for admin in mine:
            files.rename_if_there(admin.path, aside / f"{tree.name}.{admin.name}.admin")

    def _is_ours(self, admin: AdminDir) -> bool:
        if admin.name in self.taken:
            return False
        if admin.gitdir:
            return admin.gitdir == str(Path(self.tree) / ".git")
        # Killed before git recorded its tree: then it holds at most the lock.
        name = Path(self.tree).name
        if not admin.name.startswith(name) or (not admin.name[len(name) :].isdigit() and admin.name != name):
            return False
        return self.operation in (admin.locked or "") or (
            not admin.locked and _holds_only(admin.path, {"locked", "gitdir"})
        )

    def _tree_is_ours(self, world: World, tree: Path, mine: list[AdminDir]) -> bool:
        pointer = world.git.pointer_of(tree)
        if pointer is not None:
            return any(pointer == admin.path for admin in mine)
        # The path was free when the operation began, and git registered it for us: what is there is
        # what git had begun to write, or had begun to take away again.
        return not tree.is_symlink() and not files.exists(tree / ".git" / "HEAD")

    def undo(self, world: World) -> None:
        """Check the moved folder: only our own files may be deleted."""
        tree = Path(self.tree)
        aside = trash.find(world, self.operation, f"{tree.name}.tree")
        if aside.is_dir() and not self.salvaged:
            self._throw_away(world, tree, aside)
        trash.empty_beside(world, self.operation)

    def _throw_away(self, world: World, tree: Path, aside: Path) -> None:
        foreign = world.trees.foreign(aside, self.commit, (world.settings.worktrees.instructions_file,))
        for name in foreign:
            target = world.layout.salvage / "rollback" / self.operation / tree.name / name
            files.make_folders(target.parent, 0o700)
            files.rename_if_there(aside / name, target)
        files.remove_tree(aside)  # now, and not last of all: on a full disk the other steps need the room

    def say(self) -> str:
        return f"create the worktree {self.tree}" + (f" on {self.branch}" if self.branch else "")


def _is_husk(world: World, tree: Path) -> bool:
    """Whether a path holds the leftovers of a stopped git that removed its own registration."""
    if tree.is_symlink() or not _holds_only(tree, {".git"}):
        return False
    if not files.exists(tree / ".git"):
        return True  # an empty folder
    pointer = world.git.pointer_of(tree)
    if pointer is None:  # git makes the file before it writes into it
        return (tree / ".git").is_file() and (tree / ".git").stat().st_size == 0
    return pointer.parent == world.git.common / "worktrees" and not files.exists(pointer)


def _holds_only(folder: Path, names: set[str]) -> bool:
    try:
        return set(os.listdir(folder)) <= names
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class FillWorktrees(Step):
    """Write the files of all new worktrees.

    Attributes:
        commit: where they are.
        content: its tree, if it is known.
    """

    trees: tuple[str, ...]
    commit: str = ""
    content: str = ""

    def do(self, world: World) -> None:
        trees = [tree for tree in map(Path, self.trees) if not _has_files(world, tree)]
        if not trees:
            return
        world.progress(f"files of {count(len(trees), 'worktree')}")
        world.git.fill(trees, old_ns(), commit=self.commit, content=self.content)

    def say(self) -> str:
        return f"write the files of {count(len(self.trees), 'worktree')}"


def old_ns() -> int:
    """Return a time for new files: older than the index, whatever the file system's clock does."""
    return time.time_ns() - 2_000_000_000


def _has_files(world: World, tree: Path) -> bool:
    """Whether it came from the pool, with its files and their index."""
    admin = world.git.pointer_of(tree)
    return admin is not None and files.exists(admin / "index")


@dataclass(frozen=True, slots=True)
class CopyWork(Step):
    """Copy another worktree's uncommitted work into a new worktree.

    Attributes:
        snapshot: a commit of the other worktree as it is.
        paths: the files in which it differs.
    """

    tree: str
    snapshot: str
    paths: tuple[str, ...]

    def do(self, world: World) -> None:
        tree = Path(self.tree)
        world.progress(f"files of {tree.name}")
        admin = world.git.admin_of(tree)
        if admin is None:
            raise GitFailed(f"cannot create the worktree {tree.name}: git did not register it")
        world.trees.put_files(tree, admin.path, self.snapshot, self.paths)

    def say(self) -> str:
        return f"copy {count(len(self.paths), 'uncommitted file')}"


@dataclass(frozen=True, slots=True)
class BringBack(Step):
    """Fill a worktree from a salvage entry.

    Attributes:
        parts: (part, object id) of the entry.
        folder: what of it lies in files.
    """

    tree: str
    parts: tuple[tuple[str, str], ...]
    folder: str

    def do(self, world: World) -> None:
        tree, parts = Path(self.tree), dict(self.parts)
        world.progress(f"files of {tree.name}")
        admin = world.git.admin_of(tree)
        if admin is None:
            raise GitFailed(f"cannot restore {tree.name}: git did not register it")
        manifest = world.trees.read_manifests({"": parts["manifest"]})[""]
        world.trees.bring_back(tree, admin.path, parts, manifest, Path(self.folder))

    def say(self) -> str:
        return f"write the saved files of {Path(self.tree).name}"


@dataclass(frozen=True, slots=True)
class LockAgain(Step):
    """Give a restored worktree the lock its user had put on it."""

    tree: str
    reason: str

    def do(self, world: World) -> None:
        admin = world.git.admin_of(Path(self.tree))
        if admin is not None:
            world.git.lock(admin, self.reason)

    def say(self) -> str:
        return f"lock {Path(self.tree).name} again"


@dataclass(frozen=True, slots=True)
class Verify(Step):
    """Verify that git really made everything: its exit codes are not proof."""

    trees: tuple[tuple[str, str, str], ...]  # (path, branch or "", commit)

    def do(self, world: World) -> None:
        refs = world.git.tips(*(places.HEADS + branch for _, branch, _ in self.trees if branch))
        by_gitdir = {admin.gitdir: admin for admin in world.git.admin_dirs()}
        for path, branch, commit in self.trees:
            tree = Path(path)
            files.check_folder(tree)
            admin = by_gitdir.get(str(tree / ".git"))
            wrong = _what_is_wrong(world, tree, admin, branch, commit)
            if branch and refs.get(places.HEADS + branch) != commit:
                wrong = wrong or f"branch {branch} is not at {commit[:12]}"
            if wrong:
                raise GitFailed(f"cannot create the worktree {tree.name}: {wrong}")
            assert admin is not None  # noqa: S101  # _what_is_wrong said so
            world.git.unlock(admin)

    def say(self) -> str:
        return "check every worktree"


def _what_is_wrong(world: World, tree: Path, admin: AdminDir | None, branch: str, commit: str) -> str:
    if admin is None:
        return "git did not register it"
    if world.git.pointer_of(tree) != admin.path:
        return "its .git file points elsewhere"
    if admin.head != (f"ref: {places.HEADS}{branch}" if branch else commit):
        return f"its HEAD says {admin.head!r}"
    if admin.commondir != "../..":
        return f"its commondir says {admin.commondir!r}"
    if locks := [name for name in os.listdir(admin.path) if name.endswith(".lock")]:
        return f"git left {', '.join(locks)}"
    return "" if (admin.path / "index").is_file() else "it has no index"
