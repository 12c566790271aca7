"""Codex's own service dies in the middle of a command of an agent: stopping the agent names what it leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm.machine.run_folder import serving
from swarm.programs.codex import served
from swarm.testing.api import call, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_others import ready

if TYPE_CHECKING:
    from tests.support.agents import AgentLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

SERVICE = ("codex", "app-server", "daemon")


def test_what_a_dead_service_leaves_of_the_agents_conversation_is_named(agents: AgentLab) -> None:
    ready(agents, "codex")
    settings = (agents.home / ".codex/config.toml").read_text()
    trusted = f'[projects."{agents.tree("developer", "fx")}"]\ntrust_level="trusted"\n'
    agents.at_home(
        ".codex/config.toml", f'approval_policy="never"\nsandbox_mode="danger-full-access"\n{settings}{trusted}'
    )
    waits = call("exec_command", cmd="sleep 605 & echo $! > pid; wait", yield_time_ms=1000)
    agents.api.script("paint it green", waits, say("It runs."))
    folder = agents.home / ".codex" / served.FOLDER
    left = 0
    try:
        subprocess.run((*SERVICE, "start"), env=agents.env, check=True, capture_output=True)
        agents.swarm.start("fx", "developer", command="codex 'paint it green'")
        note = agents.tree("developer", "fx") / "pid"
        wait_for(lambda: note.exists() and note.read_text().endswith("\n"), "the command", 150)
        left = int(note.read_text())
        assert "Codex's own service" in agents.until("developer", "unknown").status.detail
        ((service, _),) = serving.named(str(folder / served.PID))
        os.kill(service, signal.SIGKILL)
        wait_for(lambda: agents.gone(service), "the end of the service")

        (named,) = agents.swarm.stop(["fx"]).survivors
        assert named.startswith(f"sleep, process {left}, which Codex's own service left behind")
        assert not agents.gone(left)
    finally:
        for pid in (left, *(pid for note in folder.glob("*.pid") for pid, _ in serving.named(str(note)))):
            if pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
