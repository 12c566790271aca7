"""The steps that make and remove what a box has on the machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.kit import files
from swarm.sandbox import private
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from swarm.project.model import Agent
    from swarm.project.world import World


#: A box in the folder of a saved entry.
SAVED = "box"


def made(world: World, operation: str, session: str, agents: Iterable[Agent]) -> Iterator[MakeBox]:
    """Give the steps that make the boxes of those agents that are to have one and have none yet."""
    for agent in agents:
        if agent.is_boxed and not files.exists(world.layout.box_folder(session, agent.name)):
            tree = str(world.layout.root / agent.worktree)
            yield MakeBox(operation, session, agent.name, tree, shared=agent.shared)


@dataclass(frozen=True, slots=True)
class MakeBox(Step):
    """Make an agent's private git folder and home.

    Attributes:
        session, agent: whose.
        tree: its worktree, which is there by then.
        shared: the worktree is its lead's, and so is the git folder.
    """

    session: str
    agent: str
    tree: str
    shared: bool = False

    def do(self, world: World) -> None:
        """Make it; the folder is new."""
        base = world.layout.box_folder(self.session, self.agent)
        files.make_folders(base.parent, 0o700)
        files.make_private_dir(base)
        if self.shared:
            private.make_home(world.git.runner, base)
        else:
            private.make(world.git.runner, Path(self.tree), world.git.common, base)

    def undo_files(self, world: World) -> None:
        """Remove it: nobody has worked in it yet."""
        base = world.layout.box_folder(self.session, self.agent)
        files.remove_tree(base)
        files.remove_empty(base.parent)

    def say(self) -> str:
        """Describe the step for a dry run."""
        return f"make the box of {self.agent}"


@dataclass(frozen=True, slots=True)
class BringBoxBack(Step):
    """Put a saved box in its place again: its git folder has what only git there knew, its home the conversations.

    Where git calls the worktree otherwise than before, a new box is made at the next start, and the saved one stays.
    """

    saved: str
    folder: str
    tree: str

    def do(self, world: World) -> None:
        """Move it back."""
        admin = gitdir.own_folder(world.git.common, Path(self.tree))
        saved, base = Path(self.saved), Path(self.folder)
        if admin is not None and files.exists(saved / "git" / "worktrees" / admin.name):
            files.make_folders(base.parent, 0o700)
            files.rename_within(saved, base)

    def undo_files(self, world: World) -> None:  # noqa: ARG002  # as every step
        """Put it back into the entry."""
        saved, base = Path(self.saved), Path(self.folder)
        if saved.parent.is_dir() and not files.exists(saved) and files.exists(base):
            files.rename_within(base, saved)
            files.remove_empty(base.parent)

    def say(self) -> str:
        """Describe the step for a dry run."""
        return f"restore the box of {Path(self.folder).name}"


def steps_back(world: World, operation: str, session: str, agent: str, tree: Path, entry: Path) -> Iterator[Step]:
    """Give the step that brings an agent's box back, if it was saved in the folder of an entry."""
    saved = entry / SAVED
    if saved.is_dir():
        yield BringBoxBack(operation, str(saved), str(world.layout.box_folder(session, agent)), str(tree))


def put_aside(world: World, operation: str, session: str, agent: str, entry: Path | None) -> None:
    """Take the box of an agent that goes away into its entry, or without one into the trash; may be repeated."""
    base = world.layout.box_folder(session, agent)
    if not files.exists(base):
        return
    target = entry / SAVED if entry is not None else world.layout.trash_folder(operation) / f"box-{session}-{agent}"
    files.make_folders(target.parent, 0o700)
    files.rename_within(base, target)
    files.remove_empty(base.parent)
