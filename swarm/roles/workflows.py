"""Find workflow definitions.

A file ``workflows/<name>.yaml`` with ``roles`` is all it takes; a new role joins by being named there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import yaml
from swarm.kit.errors import ConfigProblem, SwarmError
from swarm.project import names
from swarm.roles.errors import WorkflowNotFound
from swarm.roles.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEYS = frozenset({"description", "roles", "task", "aliases"})


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
    raise WorkflowNotFound(f"there is no workflow {name}", hint=f"there are {', '.join(one.name for one in found)}")


def _files(folders: tuple[Path, ...]) -> Iterator[Path]:
    for folder in folders:
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
            if name.endswith(".yaml") and not name.startswith("."):
                yield folder / name


def _read(path: Path) -> Workflow:
    table = yaml.load(path)
    facts = table.plain()
    for key in facts:
        if key not in _KEYS:
            raise ConfigProblem(f"{path}: unknown key {key!r}", hint=f"the keys are {', '.join(sorted(_KEYS))}")
    roles = _words(path, facts, "roles")
    if not roles:
        raise ConfigProblem(f"{path}: roles must name at least one role")
    try:
        names.expand_roles(list(roles))
    except SwarmError as problem:
        raise ConfigProblem(f"{path}: {problem.message}", hint=problem.hint) from problem
    return Workflow(
        name=names.check_name("workflow", path.stem),
        description=_text(path, facts, "description"),
        roles=roles,
        task=_text(path, facts, "task"),
        aliases=_words(path, facts, "aliases"),
        source=path,
    )


def _words(path: Path, facts: dict[str, object], key: str) -> tuple[str, ...]:
    value = facts.get(key) or ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
        raise ConfigProblem(f"{path}: {key} must be a list of names")
    return tuple(str(word) for word in value)


def _text(path: Path, facts: dict[str, object], key: str) -> str:
    value = facts.get(key) or ""
    if not isinstance(value, str):
        raise ConfigProblem(f"{path}: {key} must be text")
    return value
