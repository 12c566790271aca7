"""The base of steps, and their form in the journal.

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

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm.project.world import World


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
        """Undo the part that needs plain file operations only."""

    def undo(self, world: World) -> None:
        """Take back the rest; git runs again by now."""

    def say(self) -> str:
        """Describe the step for a dry run."""
        raise NotImplementedError


def to_dict(step: Step) -> dict[str, Any]:
    """Return the JSON shape of a step."""
    return {"step": type(step).__name__, **{f.name: getattr(step, f.name) for f in fields(step)}}


def from_dict(data: dict[str, Any], kind: type[Step]) -> Step:
    """Read a step of this class back from the journal."""
    return kind(**{key: _frozen(value) for key, value in data.items() if key != "step"})


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
