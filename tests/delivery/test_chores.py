"""What supervisors have done beside their programs: short tasks, without the command line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm, chores
from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

#: None of them looks at a message, or types.
UNUSED = (
    *("typer", "libtmux", "git", "yaml", "filelock", "tempfile", "secrets", "concurrent", "logging"),
    *("swarm.cli", "swarm.worktrees", "swarm.agents.launching.launch", "swarm.agents.running", "swarm.roles.options"),
)
#: Modules of swarm, with rooms: time follows.
MOST = 153


def test_telling_an_agent_of_a_message_loads_no_command_line(lab: Lab) -> None:
    """A message is typed before a command of the same kind has even loaded its parser."""
    lab.swarm.create("fx", "developer")
    lab.swarm.messages.send("developer", "hello")
    lab.swarm._world.layout.run_folder("fx", "developer").mkdir(0o700, parents=True)
    script = (
        "import sys\n"
        "from swarm import chores\n"
        f"code = chores.main([{str(lab.root)!r}, 'nudge', 'developer', 'fx'])\n"
        "print(code, *sys.modules)\n"
    )
    env = {**lab.env, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    code, *loaded = done.stdout.split()

    assert code == "0"
    assert [one for one in loaded for bad in UNUSED if one == bad or one.startswith(f"{bad}.")] == []
    assert len([one for one in loaded if one.startswith("swarm")]) <= MOST


def test_the_exit_status_is_that_of_the_same_command(lab: Lab, tmp_path: Path) -> None:
    lab.swarm.create("fx", "developer")

    assert chores.main([str(lab.root), "idle", "developer", "fx"]) == 1
    assert chores.main([str(lab.root), "nudge", "nobody", "fx"]) == 6
    assert chores.main([str(tmp_path), "label"]) == 5


def test_a_bug_is_kept_in_a_private_file(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    lab.swarm.create("fx", "developer")
    monkeypatch.setattr(Swarm, "status", broken)

    assert chores.main([str(lab.root), "label"]) == 70
    (report,) = (lab.root / ".swarm").glob("swarm-crash-*")
    assert "ZeroDivisionError" in report.read_text()
