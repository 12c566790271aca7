"""The JSON Schemas of the files that users write, for editors; each is made from the file's own reader."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from swarm.kit import files as fsio
from swarm.kit.errors import UsageProblem
from swarm.kit.forms import Field, json_schema, mapping
from swarm.project.config.settings import SECTIONS, Setting, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: Of a swarm directory: where the schemas are for editors that work offline.
FOLDER = "schema"


def _role() -> dict[str, Any]:
    from swarm.roles.file import ROLE

    return json_schema(ROLE, "Role of swarm")


def _workflow() -> dict[str, Any]:
    from swarm.roles.workflows import WORKFLOW

    return json_schema(WORKFLOW, "Workflow of swarm")


def _config() -> dict[str, Any]:
    sections = {
        section: Field(mapping(_fields([one for one in describe() if one.section == section]), dict), about)
        for section, about in SECTIONS.items()
    }
    whole = json_schema(mapping(sections, dict), "Settings of swarm")
    # A setting may also stand outside of its section, with its whole name or an old one.
    for one in describe():
        names = "|".join(re.escape(name) for name in (one.key, *one.aliases))
        whole.setdefault("patternProperties", {})[f"^({names})$"] = one.form.schema
    return whole


def _fields(settings: list[Setting]) -> dict[str, Field]:
    return {
        one.name: Field(
            one.form,
            f"{one.help} Default: {one.default_text}",
            tuple(alias.partition(".")[2] for alias in one.aliases if alias.startswith(f"{one.section}.")),
        )
        for one in settings
    }


def _pod() -> dict[str, Any]:
    from swarm.roles.pods.template import POD

    whole = json_schema(POD, "Pod template of swarm")
    whole.setdefault("patternProperties", {})["^x-"] = {}
    return whole


def _bridge() -> dict[str, Any]:
    from swarm.roles.bridge_file import BRIDGE

    return json_schema(BRIDGE, "Bridge of swarm")


def _agent() -> dict[str, Any]:
    from swarm.roles.agent_file import AGENT

    return json_schema(AGENT, "Served agent of swarm")


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "agent": _agent,
    "bridge": _bridge,
    "config": _config,
    "pod": _pod,
    "role": _role,
    "workflow": _workflow,
}


def schema(name: str) -> dict[str, Any]:
    """Return a schema.

    Raises:
        UsageProblem: there is none of this name.
    """
    if name not in SCHEMAS:
        raise UsageProblem(f"there is no schema {name!r}", hint=f"the schemas are {', '.join(SCHEMAS)}")
    return SCHEMAS[name]()


def place(swarm_dir: Path) -> None:
    """Write the schemas into a swarm directory, where they are not there as they are now."""
    folder = swarm_dir / FOLDER
    with fsio.os_errors("cannot write the schemas for editors"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in SCHEMAS:
            data = (json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n").encode()
            path = folder / f"{name}.json"
            if not fsio.exists(path) or path.read_bytes() != data:
                fsio.write_atomic(path, data, 0o600, durable=False)


def modeline(name: str, file: Path, swarm_dir: Path) -> str:
    """Return the comment by which editors find the schema of a file, offline and on every machine alike."""
    return f"# yaml-language-server: $schema={os.path.relpath(swarm_dir / FOLDER / f'{name}.json', file.parent)}\n"
