"""The role: name, kind and text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from swarm.roles.options import RoleOptions


class RoleKind(StrEnum):
    """Where a role was found; the first place that has it wins."""

    REPOSITORY = "repository"
    PROJECT = "project"
    SWARM_DIR = "swarm-dir"
    BUILTIN = "builtin"


@dataclass(frozen=True, slots=True)
class Role:
    """An agent's instructions and options.

    Attributes:
        name: in the spelling of its folder or file.
        description: one line for lists; may be empty.
        instructions: the text that is put into the worktree; may be empty if there is a
            ``system_prompt``.
        source: the file that holds the instructions, or the YAML file that names it.
        kind: which place that file belongs to.
        options: everything else that the file says.
    """

    name: str
    description: str
    instructions: str
    source: Path
    kind: RoleKind
    options: RoleOptions = field(default=RoleOptions())

    @property
    def system_prompt(self) -> str:
        """The text that replaces the agent program's own prompt; mostly empty."""
        return self.options.system_prompt


def no_role() -> Role:
    """Return the empty role of an agent without one."""
    return Role("", "", "", Path(), RoleKind.BUILTIN)


def first_sentence(instructions: str, limit: int = 100) -> str:
    """Return the first line of prose of a Markdown text, or its heading, for a list of roles."""
    lines = [line.strip().lstrip("\ufeff") for line in instructions.splitlines()]
    prose = next((line for line in lines if line and line[0] not in "#<-*`|>=[!"), "")
    heading = next((line.lstrip("# ") for line in lines if line.startswith("#")), "")
    found = "".join(c if c.isprintable() else " " for c in prose or heading)
    return found if len(found) <= limit else found[: limit - 1].rstrip() + "…"
