"""Served agents, as processes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm import TaskOver
from swarm.services import place
from swarm.services.calling import Private
from swarm.services.values import AGENT
from swarm.testing.terminal import wait_for
from tests.support.asked import TIMEOUT, Asked

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.services.values import Record
    from swarm.testing.panes import PaneLab

#: Says what it was asked, works until the file `go` is in its folder, and counts itself in a ledger.
WORK = """
import os, sys, time
asked = sys.stdin.read()
with open({ledger!r}, "a") as ledger:
    ledger.write("begun " + str(os.getpid()) + chr(10))
while "wait" in asked and not os.path.exists({gate!r}):
    time.sleep(0.02)
print("did: " + asked, end="")
sys.exit(3 if "fail" in asked else 0)
"""


class Served(Asked):
    """One served agent of a laboratory.

    Attributes:
        boxed: it is served as it is by default; else without a box.
    """

    def __init__(self, lab: PaneLab, name: str = "rev") -> None:
        super().__init__(lab)
        self.name = name
        self.ledger = lab.root.parent / "ledger"
        self.gate = lab.root.parent / "gate"
        self.boxed = False
        script = lab.root.parent / "work.py"
        script.write_text(WORK.format(ledger=str(self.ledger), gate=str(self.gate)))
        self.command = f"{sys.executable} {script}"

    def begin(self, *words: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start its server, and return at once."""
        if "--config" not in words:
            words = ("--name", self.name, *words)
        if not {"--config", "--agent", "--agent-cmd"} & set(words):
            words = (*words, "--agent-cmd", self.command)
        if "--port" not in words:
            words = (*words, "--port", "0")
        if not self.boxed:  # its program writes outside of any box what tests look at
            words = (*words, "--no-sandbox")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "swarm", "agent", "serve", *words],
            cwd=self.lab.root,
            env=self.lab.env | (env or {}),
            stderr=subprocess.PIPE,
        )
        return self.process

    def start(self, *words: str, env: dict[str, str] | None = None) -> int:
        """Start its server, wait until it takes tasks, and return its port."""
        process = self.begin(*words, env=env)
        wait_for(lambda: self.record is not None or process.poll() is not None, "the server", 60)
        record = self.record
        assert record is not None, process.communicate()[1]
        self.port = record.port
        wait_for(lambda: self.status()["state"] != "starting", "the server's readiness", 60)
        return self.port

    @property
    def record(self) -> Record | None:
        return place.find(self.root, AGENT, self.name)

    def private(self) -> socket.socket:
        """Connect to its socket."""
        holder = Private(place.folder_of(self.root, AGENT, self.name), TIMEOUT)
        holder.connect()
        return holder.sock

    # --- requests -------------------------------------------------------------------------------

    def submit(self, prompt: str, **asked: Any) -> str:
        """Give it a task; return the id."""
        code, said = self.ask("POST", "/task", {"prompt": prompt, **asked})
        assert code == 201, said
        return str(said["task_id"])

    def until(self, task_id: str, *states: str) -> dict[str, Any]:
        """Wait until a task is in one of these states, and return it."""
        seen: dict[str, Any] = {}

        def there() -> bool:
            seen.update(self.ask("GET", f"/task/{task_id}")[1])
            return seen["state"] in states

        wait_for(there, f"{task_id} in {states}", 60)
        return seen

    def begun(self) -> list[str]:
        """Return a line for each time its program began."""
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []


@pytest.fixture
def served(panes: PaneLab) -> Iterator[Served]:
    """Give an agent whose server is not started yet; its tasks end with the test."""
    made = Served(panes)
    yield made
    made.gate.touch()
    if made.process is not None:
        made.end(signal.SIGKILL)
    for task in panes.swarm.tasks():
        with contextlib.suppress(TaskOver):  # it may end meanwhile
            panes.swarm.tasks.cancel(task.id)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Give the path of an agent's file."""
    return tmp_path / "rev.yaml"
