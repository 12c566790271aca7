"""The workflow: a kind of work, its roles, and its prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Workflow:
    """A definition, read from YAML.

    Attributes:
        roles: as ``--roles`` takes them.
        task: the agents' task; ``{goal}`` stands for the goal. Empty: the goal alone.
        source: the file.
    """

    name: str
    description: str
    roles: tuple[str, ...]
    task: str
    aliases: tuple[str, ...]
    source: Path

    def tell(self, goal: str) -> str:
        """Return the text for the agents."""
        return self.task.replace("{goal}", goal) if self.task else goal
