"""Notes in the run folder about where a program keeps its records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swarm.machine import records
from swarm.machine.run_folder import runfiles

if TYPE_CHECKING:
    from pathlib import Path

FILE = "program.json"


def note(program: str, **facts: str) -> dict[str, str]:
    """Return the note as a file for ``LaunchSpec.files``."""
    return {FILE: json.dumps({"schema": records.SCHEMA, "program": program, **facts})}


def read(run_dir: str | Path) -> dict[str, str]:
    """Return the note of a run folder; empty without one."""
    found = runfiles.read(str(run_dir), FILE) or {}
    return {key: value for key, value in found.items() if isinstance(value, str)}
