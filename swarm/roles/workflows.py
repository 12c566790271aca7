"""Workflows: kinds of work, each with its roles and its prompt, and where they are found.

A file ``workflows/<name>.yaml`` with ``roles`` is all it takes; a new role joins by being named there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit import yaml
from swarm.kit.errors import SwarmError, raise_all
from swarm.kit.forms import Field, filled, listing, mapping, refuse, text
from swarm.kit.words import did_you_mean
from swarm.project import names
from swarm.roles.errors import WorkflowNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def places(root: Path, swarm_dir: Path | None) -> tuple[Path, ...]:
    """Return the folders that may hold definitions, the strongest first."""
    own = [root / ".swarm" / "workflows"]
    if swarm_dir is not None and swarm_dir != root / ".swarm":
        own.append(swarm_dir / "workflows")
    return (*own, Path(__file__).parents[1] / "workflows")


def all_workflows(folders: tuple[Path, ...]) -> tuple[Workflow, ...]:
    """Return every definition; of two with one name the stronger.

    Raises:
        ConfigProblem: a file is wrong; file, line and column are named.
    """
    found: dict[str, Workflow] = {}
    for path in _files(folders):
        if path.stem.casefold() not in found:
            found[path.stem.casefold()] = _read(path)
    return tuple(found[name] for name in sorted(found))


def find(name: str, folders: tuple[Path, ...]) -> Workflow:
    """Return the definition of a name or alias.

    Raises:
        WorkflowNotFound
    """
    names.check_name("workflow", name)
    found = all_workflows(folders)
    for one in found:
        if name.casefold() in {one.name.casefold(), *(alias.casefold() for alias in one.aliases)}:
            return one
    known = [one.name for one in found]
    raise WorkflowNotFound(
        f"there is no workflow {name}", hint=did_you_mean(name, known, f"there are {', '.join(known)}")
    )


def _files(folders: tuple[Path, ...]) -> Iterator[Path]:
    for folder in folders:
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
            if name.endswith(".yaml") and not name.startswith("."):
                yield folder / name


def _read(path: Path) -> Workflow:
    table = yaml.load(path)
    name = names.check_name("workflow", path.stem)
    try:
        found = WORKFLOW.read(table.plain())
    except ValueError as error:
        raise_all(f"workflow {name} cannot be used", table.problems(error))
        raise AssertionError from error  # a ValueError always names a problem
    return Workflow(name, source=path, **found)


def _workflow(**found: Any) -> dict[str, Any]:
    if not found.get("roles"):
        refuse("must name at least one role", key="roles")
    try:
        names.expand_roles(list(found["roles"]))
    except SwarmError as problem:
        refuse(problem.message, problem.hint, key="roles")
    return {"description": "", "task": "", "aliases": (), **found}


_NAMES = listing(text(filled, "name", least=1), "list of names", distinct=False)
WORKFLOW = mapping(
    {
        "description": Field(text(longest=500, lines=True), "The purpose, in one line."),
        "roles": Field(_NAMES, "The team, as `--roles` takes it."),
        "task": Field(
            text(longest=1 << 20, lines=True),
            "The agents' task; `{goal}` stands for the goal. Empty: the goal.",
        ),
        "aliases": Field(_NAMES, "Further names of the workflow."),
    },
    _workflow,
    "workflow",
)
