"""The steps of a transaction, as data.

A step can be written down before it is done and taken back by another process after a crash.
``undo`` may follow a ``do`` that never ran, ran in part, or was taken back already.  It touches
only what carries the operation's stamp:

* branches: the ref ``refs/swarm/op/<operation>``, made first in the same ref transaction
* worktrees: the lock reason in git's admin folder, or that folder pointing at our path
* files: their content, or the folder they are in

Taking back has two parts.  ``undo_files`` uses plain file operations alone, because a killed git can
leave a repository in which git does not run; ``undo`` may use git and comes after all of those.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from swarm.git.errors import GitFailed
from swarm.kit import files
from swarm.kit.words import count
from swarm.project import codec
from swarm.project import layout as places
from swarm.worktrees import adopt, trash
from swarm.worktrees.errors import WorktreeExists

if TYPE_CHECKING:
    from swarm.project.model import AdminDir, Agent, Session
    from swarm.project.world import World

EXCLUDE_BEGIN = b"# >>> swarm: files that swarm puts into its worktrees >>>\n"
#: The same, where the user's last line had no line end and got one.
EXCLUDE_BEGIN_GLUED = b"# >>> swarm: files that swarm puts into its worktrees (the line above had no end) >>>\n"
#: The same where there was no such file.
EXCLUDE_BEGIN_NEW = b"# >>> swarm: files that swarm puts into its worktrees (there was no file) >>>\n"
EXCLUDE_END = b"# <<< swarm <<<\n"


def stamp(operation: str) -> str:
    """The lock reason of a worktree that an operation is making."""
    return f"swarm: being made by operation {operation}"


@dataclass(frozen=True, slots=True)
class Step:
    """One change. Fields are JSON values, so that the journal can hold them."""

    operation: str

    def do(self, world: World) -> None:
        """Make the change."""
        raise NotImplementedError

    def undo_files(self, world: World) -> None:
        """Take back what plain file operations can."""

    def undo(self, world: World) -> None:
        """Take back the rest; git runs again by now."""

    def say(self) -> str:
        """Tell the user, in a dry run, what would be done."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ReserveBranches(Step):
    """Make the mark and all branches in one ref transaction: one taken name and none is made.

    Attributes:
        branches: (branch, commit) each.
        agents: for each branch, the session and agent whose work it would hold.
    """

    branches: tuple[tuple[str, str], ...]
    agents: tuple[tuple[str, str], ...]
    mark_at: str

    def do(self, world: World) -> None:
        mark = {places.op_ref(self.operation): self.mark_at}
        heads = {places.HEADS + branch: commit for branch, commit in self.branches}
        world.git.change_refs(create={**mark, **heads}, reason=f"swarm: created by {self.operation}")

    def undo(self, world: World) -> None:
        mark = places.op_ref(self.operation)
        refs = world.git.refs(mark, *(places.HEADS + branch for branch, _ in self.branches))
        self._drop_logs(world, refs)
        if mark not in refs:
            return  # the transaction never came about: branches of these names are not ours
        mine = {
            places.HEADS + branch: (commit, who)
            for (branch, commit), who in zip(self.branches, self.agents, strict=True)
        }
        moved = {
            places.salvage_ref(*who, f"rollback-{self.operation}", "head"): refs[ref]
            for ref, (commit, who) in mine.items()
            if refs.get(ref, commit) != commit
        }
        kept = world.git.refs(*moved) if moved else {}
        world.git.change_refs(
            create={ref: oid for ref, oid in moved.items() if ref not in kept},
            reason="swarm: work found while rolling back",
        )
        world.git.change_refs(
            delete={**{ref: refs[ref] for ref in mine if ref in refs}, mark: refs[mark]},
            reason=f"swarm: rolled back {self.operation}",
        )

    def _drop_logs(self, world: World, refs: dict[str, str]) -> None:
        """Remove the logs of branches that git began and never made: it writes the log first."""
        for branch, _ in self.branches:
            log = world.git.common / "logs" / places.HEADS / branch
            if places.HEADS + branch in refs or not log.is_file():
                continue
            if log.stat().st_size == 0 or self.operation in world.git.first_reflog_message(branch):
                files.unlink_if_there(log)

    def say(self) -> str:
        return f"create the branch{'es' if len(self.branches) > 1 else ''} " + ", ".join(
            branch for branch, _ in self.branches
        )


@dataclass(frozen=True, slots=True)
class MakeBase(Step):
    """Make the folder of the worktrees, hidden from git by an ignore file of its own."""

    path: str
    existed: bool
    had_ignore: bool

    def do(self, world: World) -> None:
        folder = Path(self.path)
        files.make_folders(folder)
        if not files.exists(folder / ".gitignore"):
            files.write_atomic(folder / ".gitignore", world.ignore_text, 0o644, durable=False)

    def undo_files(self, world: World) -> None:
        files.sweep_temporaries(Path(self.path), ".gitignore")

    def undo(self, world: World) -> None:
        if not self.existed:
            remove_base(world, Path(self.path))
        elif not self.had_ignore:
            _unlink_same(Path(self.path) / ".gitignore", world.ignore_text)

    def say(self) -> str:
        return f"make the folder {self.path}"


def remove_base(world: World, folder: Path) -> bool:
    """Remove the folder of the worktrees when nothing but our own ignore file is left in it."""
    try:
        left = os.listdir(folder)
    except FileNotFoundError:
        left = []  # stopped half way: its parents may be there
    except NotADirectoryError:
        return True
    ours = [
        name for name in left if name == ".gitignore" or (name.startswith("..gitignore.") and name.endswith(".tmp"))
    ]
    if len(ours) != len(left):
        # The user keeps things here: they are seen by git again, but no worktree that somebody left.
        if not any(files.exists(folder / name / ".git") for name in left):
            _unlink_same(folder / ".gitignore", world.ignore_text)
        return False
    for name in ours:
        if name == ".gitignore":
            _unlink_same(folder / name, world.ignore_text)
        else:
            files.unlink_if_there(folder / name)
    if not files.remove_empty(folder):
        return False
    for parent in folder.parents:  # worktrees.base_path may be several folders deep
        if parent == world.layout.root or not files.remove_empty(parent):
            break
    return True


def _unlink_same(path: Path, content: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        if files.read_small(path) == content:
            files.unlink_if_there(path)


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
        # Killed before it was told where its tree is: then it holds at most the lock.
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
        """Look through what was moved aside: nothing but what we made may be thrown away."""
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
    """Whether a path holds what a git that was stopped leaves after it took its registration back itself."""
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
        world.progress(f"files of {count(len(self.trees), 'worktree')}")
        # Two seconds: older than the index whatever the file system's clock does.
        old_ns = world.host.now_ns() - 2_000_000_000
        world.git.fill([Path(tree) for tree in self.trees], old_ns, commit=self.commit, content=self.content)

    def say(self) -> str:
        return f"write the files of {count(len(self.trees), 'worktree')}"


@dataclass(frozen=True, slots=True)
class HideInstructions(Step):
    """Add one line to the repository's ``info/exclude``, in a block of ours."""

    file: str
    exclude: str
    existed: bool
    there: bool = False

    def do(self, world: World) -> None:
        path = Path(self.exclude)
        path.parent.mkdir(exist_ok=True)
        there = files.exists(path)
        old = files.read_small(path) if there else b""
        if self._line() in old.splitlines(keepends=True):
            return
        # An unfinished last line of the user's must be told apart later: it gets back as it was.
        begin = EXCLUDE_BEGIN if not old or old.endswith(b"\n") else b"\n" + EXCLUDE_BEGIN_GLUED
        begin = begin if there else EXCLUDE_BEGIN_NEW
        mode = path.stat().st_mode & 0o777 if old else 0o644
        files.write_atomic(path.resolve(), old + begin + self._line() + EXCLUDE_END, mode)

    def _line(self) -> bytes:
        return b"/" + os.fsencode(self.file) + b"\n"

    def undo(self, world: World) -> None:
        if not self.there:
            show_again(Path(self.exclude), keep_file=self.existed, line=self._line())

    def say(self) -> str:
        return f"hide {self.file} by a line in .git/info/exclude"


def show_again(exclude: Path, *, keep_file: bool = True, line: bytes = b"") -> None:
    """Take swarm's blocks, or the one with *line*, out of an exclude file; the other bytes stay as they are."""
    files.sweep_temporaries(exclude.parent, exclude.name)
    try:
        old = files.read_small(exclude)
    except OSError:
        return
    inside = re.escape(line) if line else rb"(?:.*\n)*?"
    end = inside + re.escape(EXCLUDE_END)
    # The line end that was added goes again, unless somebody has written on behind the block.
    new = re.sub(rb"\n" + re.escape(EXCLUDE_BEGIN_GLUED) + end + rb"\Z", b"", old)
    begins = b"|".join(map(re.escape, (EXCLUDE_BEGIN, EXCLUDE_BEGIN_GLUED, EXCLUDE_BEGIN_NEW)))
    new = re.sub(rb"(?:" + begins + rb")" + end, b"", new)
    if not new and (not keep_file or EXCLUDE_BEGIN_NEW in old):
        files.unlink_if_there(exclude)
        files.remove_empty(exclude.parent)
    elif new != old:
        files.write_atomic(exclude.resolve(), new, exclude.stat().st_mode & 0o777)


@dataclass(frozen=True, slots=True)
class PlaceInstructions(Step):
    """Put the role's text into a worktree; a file that is there is never touched."""

    tree: str
    file: str
    text: str

    def do(self, world: World) -> None:
        path = Path(self.tree) / self.file
        files.write_new(path, self.text.encode("utf-8", "surrogateescape"))

    def say(self) -> str:
        return f"put the instructions into {Path(self.tree).name}/{self.file}"


def digest(text: str) -> str:
    """Return the checksum by which a placed file is recognised."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class BranchNotes(Step):
    """Give a restored branch its old log and its configuration.

    Attributes:
        manifest: the commit that holds the saved log.
    """

    branch: str
    manifest: str
    config: tuple[tuple[str, str], ...]

    def do(self, world: World) -> None:
        log = world.trees.saved_file(self.manifest, "branch-log")
        path = world.git.common / "logs" / places.HEADS / self.branch
        if log is not None and path.is_file():
            files.write_atomic(path, log, 0o644, durable=False)
        world.git.add_config(self.config)

    def undo_files(self, world: World) -> None:
        log = world.git.common / "logs" / places.HEADS / self.branch
        files.sweep_temporaries(log.parent, log.name)

    def undo(self, world: World) -> None:
        mark = places.op_ref(self.operation)
        if self.config and mark in world.git.refs(mark):
            world.git.drop_branch_config(self.branch)

    def say(self) -> str:
        return f"bring back the log and settings of {self.branch}"


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
class PointHead(Step):
    """Check out a branch that has no commit yet, which git does for no worktree that it adds."""

    tree: str
    branch: str

    def do(self, world: World) -> None:
        admin = world.git.admin_of(Path(self.tree))
        if admin is not None:
            head = os.fsencode(f"ref: {places.HEADS}{self.branch}\n")
            files.write_atomic(admin.path / "HEAD", head, 0o644, durable=False)

    def say(self) -> str:
        return f"check out {self.branch}, which has no commit yet, in {Path(self.tree).name}"


@dataclass(frozen=True, slots=True)
class Verify(Step):
    """Look whether what was asked of git is really there: its exit codes are not proof."""

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


@dataclass(frozen=True, slots=True)
class Settle(Step):
    """Wait until the files are on the disk, so that a power cut cannot make a hollow set."""

    folder: str

    def do(self, world: World) -> None:
        if world.settings.worktrees.durable:
            files.sync_filesystem(Path(self.folder))

    def say(self) -> str:
        return "sync the file system"


@dataclass(frozen=True, slots=True)
class WriteRecord(Step):
    """Put the session record in place. This rename is the commit: before it nothing counts, after it all does."""

    record: str

    def do(self, world: World) -> None:
        session = self.session()
        agents = tuple(
            agent if agent.admin else replace(agent, admin=self._admin(world, agent)) for agent in session.agents
        )
        written = replace(session, agents=agents)
        world.sessions.write(written)
        adopt.leave_copies(world, written)

    def _admin(self, world: World, agent: Agent) -> str:
        admin = world.git.admin_of(world.layout.root / agent.worktree)
        if admin is None:
            raise GitFailed(f"cannot record agent {agent.name}: its worktree is not registered in git any more")
        return admin.name

    def session(self) -> Session:
        """Return the record to write; an agent's admin folder is empty until its worktree is made."""
        return codec.session_from_bytes(self.record.encode("ascii"), "the journal")

    def undo(self, world: World) -> None:
        folder = world.layout.session_file(self.session().name).parent
        for name in os.listdir(folder) if folder.is_dir() else ():
            if name.startswith(".") and name.endswith(".tmp"):
                files.unlink_if_there(folder / name)
        files.remove_empty(folder)

    def say(self) -> str:
        return "write the session record (from here on the set exists)"


class Registry:
    """Steps by name, for reading the journal."""

    known: ClassVar[dict[str, type[Step]]] = {
        cls.__name__: cls
        for cls in (
            ReserveBranches,
            MakeBase,
            AddWorktree,
            FillWorktrees,
            HideInstructions,
            PlaceInstructions,
            BranchNotes,
            BringBack,
            LockAgain,
            PointHead,
            Verify,
            Settle,
            WriteRecord,
        )
    }


def to_dict(step: Step) -> dict[str, Any]:
    """Return the JSON shape of a step."""
    return {"step": type(step).__name__, **{f.name: getattr(step, f.name) for f in fields(step)}}


def from_dict(data: dict[str, Any]) -> Step:
    """Read a step back from the journal."""
    facts = {key: _frozen(value) for key, value in data.items() if key != "step"}
    return Registry.known[data["step"]](**facts)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
