"""Served agents, as processes, and a client that says exactly what a test wants said."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm import TaskOver
from swarm.services import place
from swarm.services.calling import Private
from swarm.services.values import AGENT
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
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


class Served:
    """One served agent of a laboratory.

    Attributes:
        boxed: it is served as it is by default; else without a box.
    """

    def __init__(self, lab: PaneLab, name: str = "rev") -> None:
        self.lab = lab
        self.name = name
        self.root = lab.root / ".swarm"
        self.ledger = lab.root.parent / "ledger"
        self.gate = lab.root.parent / "gate"
        self.boxed = False
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.said = b""
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

    @property
    def token(self) -> str:
        return (self.root / "credentials/api-token").read_text().strip()

    def end(self, signum: int = signal.SIGTERM) -> int:
        """End its server; return the exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signum)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end of its server; return the exit status."""
        assert self.process is not None
        self.said += self.process.communicate(timeout=60)[1]
        code, self.process = self.process.returncode, None
        return code

    # --- requests -------------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = "", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Make a request with the right token; return status and answer."""
        sent = {"Authorization": f"Bearer {token or self.token}"} if token is not None else {}
        data = None if body is None else json.dumps(body)
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            one.request(method, path, data, sent)
            answer = one.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            one.close()

    def status(self) -> dict[str, Any]:
        return self.ask("GET", "/status", token=None)[1]

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

    def raw(self, data: bytes, *, private: bool = False, timeout: float = 60) -> bytes:
        """Send bytes; return all that comes until the connection ends, or says nothing more."""
        if private:
            holder = Private(place.folder_of(self.root, AGENT, self.name), timeout)
            holder.connect()
            one = holder.sock
        else:
            one = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        said = b""
        try:
            one.sendall(data)
            while piece := one.recv(1 << 16):
                said += piece
        except (ConnectionError, TimeoutError):
            pass
        finally:
            one.close()
        return said


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
