"""Read the files of served agents: ``agents/<name>/config.yaml`` of a swarm directory, or any file that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.kit import yaml
from swarm.kit.errors import ConfigProblem, SwarmError, raise_all
from swarm.project import names
from swarm.roles.agent_file import AGENT
from swarm.services.values import ServedAgent

if TYPE_CHECKING:
    from pathlib import Path

AGENTS, FILE = "agents", "config.yaml"


def read(path: Path) -> ServedAgent:
    """Read a file.

    Raises:
        ConfigProblem: it is wrong; file, line and column are named.
        InvalidName: neither the file nor its folder has a name for the agent.
    """
    table = yaml.load(path)
    try:
        found = AGENT.read(table.plain())
    except ValueError as error:
        raise_all(f"the agent of {path} cannot be used", table.problems(error))
        raise AssertionError from error  # a ValueError always names a problem
    name = found.name or (path.absolute().parent.name if path.name == FILE else path.stem)
    return ServedAgent(names.check_name("agent", name), found, path)


def files_of(root: Path) -> dict[str, Path]:
    """Return the file of each agent that a swarm directory configures, by its name."""
    folder = root / AGENTS
    try:
        found = sorted(path for path in folder.iterdir() if (path / FILE).is_file())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {path.name: path / FILE for path in found}


def problems_of(path: Path) -> list[SwarmError]:
    """Return all that is wrong with a file."""
    try:
        table = yaml.load(path)
    except ConfigProblem as problem:
        return [problem]
    try:
        AGENT.read(table.plain())
    except ValueError as error:
        return list(table.problems(error))
    try:
        read(path)
    except SwarmError as problem:
        return [problem]
    return []
