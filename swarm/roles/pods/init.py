"""Write new pod templates: one that explains every key, or the team of a session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swarm.kit import files as fsio
from swarm.kit.errors import UsageProblem
from swarm.project.names import check_name
from swarm.roles import schemas
from swarm.roles.errors import PodExists
from swarm.roles.init import swarm_dir_for
from swarm.roles.pods import template as pod
from swarm.roles.pods.find import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.roles.find import RolePlaces

_TEMPLATE = """\
# A pod: a team that starts with one word. `swarm pod check NAME` finds every mistake.
pod_name: NAME
description: What the team is for, in one line.

# Variables: `${focus}` stands for the value. Without a default a launch must give one: --var focus=parser
vars:
  focus: {default: the whole project, description: what they work on}
  developers: {type: int, default: 1, min: 1, max: 8}

agents:
  - name: lead
    role: architect
    task: "Split up the work on ${focus}."
  - name: developer
    role: developer
    count: ${developers}        # developer-1, developer-2 and so on
    task: "Part ${index} of ${count}: ${focus}"
    # overrides: {model: opus}  # keys of the role, as --override takes them
    # env: {CI: "1"}            # variables of its environment
  - name: reviewer
    role: reviewer
    task: Review what the developers have done.
    after: [developer]          # it gets its task when they have finished theirs
"""


def write(
    name: str,
    places: RolePlaces,
    team: Sequence[tuple[str, str, str, Sequence[tuple[str, str]], Sequence[str]]] = (),
    *,
    private: bool,
) -> Path:
    """Write a template into the project's ``.swarm``, or the swarm directory, and return it.

    Args:
        team: name, role, task, overrides and `after` of each agent; without any, the template that explains all.

    Raises:
        InvalidName, ReservedName, UsageProblem: it cannot be called so.
        PodExists: there is one of this name.
    """
    check_name("pod template", name)
    try:
        pod.check_pod(name)
    except ValueError as error:
        raise UsageProblem(f"cannot write the pod template {name}: its name {error}") from None
    base = swarm_dir_for(places, private=private)
    path = base / TEMPLATES / f"{name}.yaml"
    text = schemas.modeline("pod", path, base) + (_team(name, team) if team else _TEMPLATE.replace("NAME", name))
    with fsio.os_errors(f"cannot write the pod template {name}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fsio.write_new(path, text.encode(), 0o644)
        except FileExistsError:
            raise PodExists(f"cannot write the pod template {name}: {path} is there already") from None
    return path


def _team(name: str, team: Sequence[tuple[str, str, str, Sequence[tuple[str, str]], Sequence[str]]]) -> str:
    lines = [f"pod_name: {name}", "agents:"]
    for agent, role, task, changes, after in team:
        lines += [f"  - name: {agent}", f"    role: {role}"]
        said = (("task", task), ("overrides", dict(changes)), ("after", list(after)))
        # As JSON each value is YAML too; a dollar would be a variable.
        lines += [
            f"    {key}: {json.dumps(value, ensure_ascii=False).replace('$', '$$')}" for key, value in said if value
        ]
    return "\n".join(lines) + "\n"
