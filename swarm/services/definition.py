"""Read the files of served agents: ``agents/<name>/config.yaml`` of a swarm directory, or any file that is named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.kit import yaml
from swarm.kit.errors import ConfigProblem, SwarmError, raise_all
from swarm.kit.forms import Misfit, Trouble
from swarm.programs import registry
from swarm.project import names
from swarm.project.names import PROGRAMS
from swarm.roles.agent_file import AGENT
from swarm.services.values import ServedAgent

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.roles.agent_file import AgentFile

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
        check_model(found)
    except ValueError as error:
        raise_all(f"the agent of {path} cannot be used", table.problems(error))
        raise AssertionError from error  # a ValueError always names a problem
    name = found.name or (path.absolute().parent.name if path.name == FILE else path.stem)
    if found.tls is not None and found.tls.cert:
        folder = path.absolute().parent
        cert, key = (os.path.join(folder, one) for one in (found.tls.cert, found.tls.key))
        found = found._replace(tls=found.tls._replace(cert=cert, key=key))
    return ServedAgent(names.check_name("agent", name), found, path)


def check_model(says: AgentFile) -> None:
    """Refuse a model that the agent's program has not.

    Raises:
        Misfit
    """
    if not says.model or says.command or registry.program(says.program).has_model(says.model):
        return
    place = ("model",) if says.program != PROGRAMS[0] else (PROGRAMS[0], "model")
    raise Misfit(Trouble(f"unknown model {says.model!r} of {says.program}", path=place))


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
        check_model(AGENT.read(table.plain()))
    except ValueError as error:
        return list(table.problems(error))
    try:
        read(path)
    except SwarmError as problem:
        return [problem]
    return []


def check_box(root: Path, agent: ServedAgent) -> None:
    """Refuse what widens a box where somebody else than the user may have written it.

    Raises:
        ConfigProblem
    """
    key, path = agent.says.sandbox.widens, agent.source
    if path is None or not key:
        return
    file, top = os.path.realpath(path), os.path.realpath(root)
    if os.path.commonpath((file, top)) == top:
        raise ConfigProblem(
            f"{path}: sandbox.{key} is not for a file in a repository to say",
            hint="keep the file elsewhere and name it with --config, or use --no-sandbox",
        )
