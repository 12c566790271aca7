"""The steps of swarm's own files: the folder of the worktrees, the exclude file, instructions, the record."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.errors import GitFailed
from swarm.kit import files
from swarm.project import codec
from swarm.worktrees import adopt
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World


@dataclass(frozen=True, slots=True)
class MakeBase(Step):
    """Make the folder of the worktrees, hidden from git by its own ignore file."""

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
    ours = [name for name in left if name == ".gitignore" or files.is_temporary(name, ".gitignore")]
    if len(ours) != len(left):
        # The user keeps files here: git sees them again, but not leftover worktrees.
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


EXCLUDE_BEGIN = b"# >>> swarm: files that swarm puts into its worktrees >>>\n"
#: The same, where the user's last line had no line end and got one.
EXCLUDE_BEGIN_GLUED = b"# >>> swarm: files that swarm puts into its worktrees (the line above had no end) >>>\n"
#: The same where there was no such file.
EXCLUDE_BEGIN_NEW = b"# >>> swarm: files that swarm puts into its worktrees (there was no file) >>>\n"
EXCLUDE_END = b"# <<< swarm <<<\n"


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
        # An unfinished last line of the user's must be recognizable later, to restore it as it was.
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
    # Remove the added line end again, unless a user has written after the block.
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
    """Write the role's text into a worktree; never touch an existing file."""

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
class SyncToDisk(Step):
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
            agent if agent.admin or agent.shared else agent._replace(admin=self._admin(world, agent))
            for agent in session.agents
        )
        written = session._replace(agents=agents)
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
        files.sweep_temporaries(folder)
        files.remove_empty(folder)

    def say(self) -> str:
        return "write the session record (from here on the set exists)"
