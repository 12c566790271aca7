"""The server of a project, as a process."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from swarm.api import serving
from swarm.eventlog.log import EventLog
from swarm.eventlog.values import Happened
from swarm.project.swarm_dir.dirs import init_dir
from swarm.testing.terminal import wait_for
from tests.support.asked import TIMEOUT, Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.panes import PaneLab

#: Says what it was asked, works until the file `go` is there, and counts itself in a ledger.
WORK = """
import os, sys, time
asked = sys.stdin.read()
with open({ledger!r}, "a") as ledger:
    ledger.write(asked.split()[0] + " " + str(os.getpid()) + chr(10))
while "wait" in asked and not os.path.exists({gate!r}):
    time.sleep(0.02)
print("did: " + asked, end="")
"""


class Project(Asked):
    """One served project, with an agent `rev` whose program is a script."""

    def __init__(self, lab: PaneLab) -> None:
        super().__init__(lab)
        #: Outside of the repository, where a file may take the box of an agent away: what it does is to be seen.
        self.servers = lab.root.parent / "servers"
        init_dir(self.servers, mode=0o700, environ=lab.env)
        self.ledger = lab.root.parent / "ledger"
        self.gate = lab.root.parent / "gate"

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Start the server, and return at once."""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "swarm", "serve", *words],
            cwd=self.lab.root,
            env=self.lab.env | {"SWARM_ROOT": str(self.servers)},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        return self.process

    def start(self, *words: str) -> int:
        """Start the server, wait until it knows the project, and return its port."""
        process = self.begin(*words)
        wait_for(lambda: serving.status(self.lab.root) is not None or process.poll() is not None, "the server", 60)
        now = serving.status(self.lab.root)
        assert now is not None, process.communicate()[1]
        self.port = now.port
        wait_for(lambda: self.status()["state"] != "starting", "the server's readiness", 60)
        return self.port

    def configure(self, name: str = "rev") -> None:
        """Write down an agent, whose program is the script above."""
        script = self.lab.root.parent / "work.py"
        script.write_text(WORK.format(ledger=str(self.ledger), gate=str(self.gate)))
        path = self.servers / "agents" / name / "config.yaml"
        path.parent.mkdir(parents=True)
        free = {"sandbox": {"enabled": False}}
        path.write_text(json.dumps({"port": 9000, "command": f"{sys.executable} {script}", **free}))

    @property
    def token(self) -> str:
        return (self.servers / "credentials/api-token").read_text().strip()

    def private(self) -> socket.socket:
        one = socket.socket(socket.AF_UNIX)
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(self.root / "server")
            one.connect("http")
        finally:
            os.fchdir(here)
            os.close(here)
        return one

    # --- tasks ----------------------------------------------------------------------------------

    def submit(self, prompt: str, **asked: Any) -> str:
        """Give it a task; return the id."""
        code, said = self.ask("POST", "/tasks", {"prompt": prompt, "agent": "rev", **asked})
        assert code == 201, said
        return str(said["task_id"])

    def until(self, task_id: str, *states: str) -> dict[str, Any]:
        """Wait until a task is in one of these states, and return it."""
        seen: dict[str, Any] = {}

        def there() -> bool:
            seen.update(self.ask("GET", f"/tasks/{task_id}")[1])
            return seen["state"] in states

        wait_for(there, f"{task_id} in {states}", 60)
        return seen

    def begun(self) -> list[list[str]]:
        """Return, for each time its program began, the first word that it was told, and its process."""
        return [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []

    # --- events ---------------------------------------------------------------------------------

    def happen(self, *numbers: int) -> int:
        """Write events into the log of the project, as swarm's own processes do; return the number of the last."""
        log = EventLog(self.root)
        try:
            return log.append([Happened("agent.state", f"developer@s{number}", None, {}) for number in numbers])
        finally:
            log.close()

    @contextmanager
    def watching(self, after: int | None = None, *, query: str = "", token: str = "") -> Iterator[Watcher]:
        """Follow the events from here on."""
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {token or self.token}"}
        headers |= {"Last-Event-ID": str(after)} if after is not None else {}
        one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        one.request("GET", f"/events{query}", headers=headers)
        answer = one.getresponse()
        assert answer.status == 200, answer.read()
        try:
            yield Watcher(answer)
        finally:
            answer.close()
            one.close()


class Watcher:
    """Reads a stream of events."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer

    def block(self) -> dict[str, str]:
        """Return the fields of the next block; empty at the end of the stream."""
        found: dict[str, str] = {}
        while line := self.answer.readline():
            if line == b"\n":
                if found:
                    return found
                continue
            name, _, value = line.decode().rstrip("\n").partition(":")
            if name:
                found[name] = value.strip()
        return {}

    def event(self) -> dict[str, Any]:
        """Return the next event, with its name where it has one; empty at the end of the stream."""
        while one := self.block():
            if "data" in one:
                said: dict[str, Any] = json.loads(one["data"])
                assert "id" not in one or int(one["id"]) == said["number"]
                return {**said, "event": one.get("event", "")}
        return {}

    def events(self, count: int) -> list[dict[str, Any]]:
        """Return the next events."""
        return [self.event() for _ in range(count)]


@pytest.fixture
def project(panes: PaneLab) -> Iterator[Project]:
    """Give a project whose server is not started yet; its tasks end with the test."""
    made = Project(panes)
    yield made
    made.gate.touch()
    if made.process is not None:
        made.end(signal.SIGKILL)
    for task in panes.swarm.tasks():
        panes.swarm.tasks.cancel(task.id)


def number_of(subject: str) -> int:
    """Return the number that ``Project.happen`` was given."""
    found = re.fullmatch(r"developer@s(\d+)", subject)
    assert found is not None, subject
    return int(found[1])
