"""Where the conversation of a Codex agent goes on without its pane. Standard library only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.machine.run_folder import runfiles
from swarm.programs.codex import served

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def elsewhere(run_dir: str | Path, pid: int, _told: Mapping[str, str]) -> str:
    """Return the service that holds the conversation."""
    source = runfiles.read(str(run_dir), runfiles.RECORD) or {}
    service = served.by(str(source.get("home")), str(source.get("cwd")), pid)
    return f"Codex's own service, process {service} (codex app-server daemon stop)" if service else ""
