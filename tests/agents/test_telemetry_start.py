"""Telemetry of a started agent: in its environment, and nowhere else."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]
#: Writes down its environment when all of it is there, and waits.
TELL = (
    "import os, time; there = os.environ['SWARM_RUN_DIR'] + '/told';"
    "open(there + '-', 'wb').write(b'\\0'.join(k + b'=' + v for k, v in os.environb.items()));"
    "os.rename(there + '-', there); time.sleep(600)"
)


def content(file: Path) -> bytes:
    """Return what is in a file; those of the processes that show states come and go."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def told(panes: PaneLab, agent: str) -> dict[str, str]:
    """Wait for what an agent's program was given, and return the part of it that is telemetry."""
    file = panes.run(agent) / "told"
    wait_for(file.exists, f"the environment of {agent}")
    pairs = (os.fsdecode(one).split("=", 1) for one in file.read_bytes().split(b"\0"))
    return {name: value for name, value in pairs if name.startswith(("OTEL", "CLAUDE"))}


def test_the_program_knows_and_nobody_else(panes: PaneLab) -> None:
    headers = Path(panes.env["HOME"], "headers")
    headers.write_text("authorization: hunter2\n")
    panes.env |= {"SWARM_TELEMETRY_ENABLED": "true", "SWARM_TELEMETRY_HEADERS_FILE": "~/headers"}
    panes.write({"roles/quiet.yaml": json.dumps({"name": "quiet", "instructions": "x", "telemetry": False})})
    command = [sys.executable, "-I", "-S", "-c", TELL]

    headers.chmod(0o644)
    refused = panes.cli("start", "fx", "--roles", "developer", "--agent-cmd", "sleep 600")
    assert (refused.returncode, "chmod 600" in refused.stderr) == (2, True)
    assert not (panes.root / ".worktrees").exists()

    headers.chmod(0o600)
    panes.swarm.start("fx", "developer,quiet", command=command)

    found = told(panes, "developer")
    assert found["OTEL_EXPORTER_OTLP_HEADERS"] == "authorization=hunter2"
    assert found["OTEL_RESOURCE_ATTRIBUTES"].startswith("swarm.session=fx,swarm.agent=developer,swarm.role=developer,")
    assert told(panes, "quiet") == {}
    start = panes.tmux("list-panes", "-a", "-F", "#{pane_start_command} #{pane_title}")
    known = panes.tmux("show-environment", "-g") + panes.tmux("show-environment", "-t", "=swarm:")
    assert "hunter2" not in start + known
    lines = panes.processes().values()
    assert lines
    assert not any("hunter2" in line for line in lines)
    kept = [file for file in (panes.root / ".swarm").rglob("*") if file.is_file() and file.name != "told"]
    assert not any(b"hunter2" in content(file) for file in kept)
