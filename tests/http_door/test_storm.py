"""V4: tasks through several agents whose servers are killed again and again: none is lost, and none is done twice.

``SWARM_TASK_STORM=1000,8`` runs so many tasks through so many agents, and writes what it took into the file that
``SWARM_TASK_STORM_REPORT`` names; the default is a short form of it.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for
from tests.http_door.conftest import Served

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

TASKS, AGENTS = (int(one) for one in os.environ.get("SWARM_TASK_STORM", "10,2").split(","))
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240 + 20 * TASKS)]
#: Between two kills of one server's process.
_EACH = 2.0
#: It appends its prompt to the ledger, in one write.
WORK = """
import os, sys
asked = sys.stdin.read()
fd = os.open({ledger!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(fd, asked.strip().encode() + b"\\n")
print("did " + asked, end="")
"""


class Storm:
    """One agent, a client that gives it tasks whatever happens, and somebody who kills its server."""

    def __init__(self, served: Served, prompts: list[str]) -> None:
        self.served = served
        self.prompts = prompts
        self.killed = 0
        self.over = threading.Event()
        self.answered = threading.Event()
        self.states: list[str] = []

    def kill(self) -> None:
        """Kill the server every two seconds, once it has done something, and start the next one."""
        chance = random.Random(self.served.name)
        while not self.over.wait(_EACH * chance.uniform(0.5, 1.5)):
            if not self.answered.is_set():
                continue  # a slow machine; it would never get to anything
            self.answered.clear()
            process = self.served.process
            assert process is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stderr is not None
            process.stderr.close()
            self.killed += 1
            self.served.begin()

    def work(self) -> None:
        """Give each task until it is accepted, and follow it to its end."""
        for prompt in self.prompts:
            task_id = self._accepted(prompt)
            wait_for(lambda task_id=task_id: self._is_over(task_id), f"the end of {task_id}", 120)  # type: ignore[misc]

    def _accepted(self, prompt: str) -> str:
        found: list[str] = []

        def is_accepted() -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                self._find()
                code, said = self.served.ask("POST", "/task", {"prompt": prompt}, Idempotency_Key=prompt)
                assert code in (201, 409, 503), said
                if code != 503:
                    self.answered.set()
                if code == 201:
                    found.append(said["task_id"])
            return bool(found)

        wait_for(is_accepted, f"the acceptance of {prompt}", 120)
        return found[0]

    def _is_over(self, task_id: str) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            self._find()
            code, said = self.served.ask("GET", f"/task/{task_id}")
            assert code == 200, said  # an accepted task is never lost
            self.answered.set()
            if said["state"] in ("completed", "failed", "cancelled"):
                self.states.append(said["state"])
                return True
        return False

    def _find(self) -> None:
        record = self.served.record
        if record is None:
            raise ConnectionError
        self.served.port = record.port


def test_servers_are_killed_and_each_task_is_done_once(panes: PaneLab) -> None:
    ledger = panes.root.parent / "storm"
    script = panes.root.parent / "storm.py"
    script.write_text(WORK.format(ledger=str(ledger)))
    (panes.root / ".swarm").mkdir(exist_ok=True)
    storms = []
    for number in range(AGENTS):
        served = Served(panes, f"agent{number}")
        served.command = f"python3 {script}"
        storms.append(Storm(served, [f"t{number}-{one}" for one in range(TASKS // AGENTS)]))
        served.start()
    began = time.monotonic()
    with ThreadPoolExecutor(2 * AGENTS) as pool:
        working = [pool.submit(one.work) for one in storms]
        killing = [pool.submit(one.kill) for one in storms]
        wait(working, return_when=FIRST_EXCEPTION)
        for storm in storms:
            storm.over.set()
    for one in storms:
        one.served.end(signal.SIGKILL)
    for each in (*working, *killing):
        each.result()
    took = time.monotonic() - began
    wanted = [prompt for one in storms for prompt in one.prompts]
    done = Counter(ledger.read_text().splitlines())
    report = f"{len(wanted)} tasks, {sum(one.killed for one in storms)} kills, {took:.1f} s"
    assert [prompt for prompt in wanted if done[prompt] != 1] == [], report
    assert sum(done.values()) == len(wanted)
    assert [state for one in storms for state in one.states] == ["completed"] * len(wanted)
    assert panes.swarm.tasks() == ()
    assert sum(one.killed for one in storms) >= 1
    if "SWARM_TASK_STORM" in os.environ:
        Path(os.environ.get("SWARM_TASK_STORM_REPORT", os.devnull)).write_text(f"{report}\n")
