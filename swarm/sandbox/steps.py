"""The steps that make and remove what a box has on the machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.sandbox import private
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from swarm.project.world import World


@dataclass(frozen=True, slots=True)
class MakeBox(Step):
    """Make an agent's private git folder and home.

    Attributes:
        session, agent: whose.
        tree: its worktree, which is there by then.
    """

    session: str
    agent: str
    tree: str

    def do(self, world: World) -> None:
        """Make it; the folder is new."""
        base = world.layout.box_folder(self.session, self.agent)
        files.make_folders(base.parent, 0o700)
        files.make_private_dir(base)
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
class RemoveBox(Step):
    """Put an agent's private git folder and home aside; the trash of the operation is emptied when it is done.

    The caller has taken in and captured what is in it.
    """

    session: str
    agent: str

    def do(self, world: World) -> None:
        """Move it aside, by its name alone."""
        base = world.layout.box_folder(self.session, self.agent)
        files.make_folders(self._aside(world).parent, 0o700)
        files.rename_within(base, self._aside(world))
        files.remove_empty(base.parent)

    def undo_files(self, world: World) -> None:
        """Bring it back."""
        base = world.layout.box_folder(self.session, self.agent)
        if files.exists(self._aside(world)):
            files.make_folders(base.parent, 0o700)
            files.rename_within(self._aside(world), base)

    def _aside(self, world: World) -> Path:
        return world.layout.trash_folder(self.operation) / f"box-{self.session}-{self.agent}"

    def say(self) -> str:
        """Describe the step for a dry run."""
        return f"remove the box of {self.agent}"
