"""A soak of the server of a project: tasks come in by HTTP while the server is killed again and again.

Each task is sent under a key of its own until the server accepts it, whoever that is by then, and its program writes
its name into a ledger.  Afterwards each task is completed, and each name is in the ledger once: none is lost or twice.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.api import serving
from swarm.project.swarm_dir.dirs import init_dir
from swarm.services import credentials
from swarm.testing.lab import Lab

if TYPE_CHECKING:
    from swarm import Swarm

_PATIENCE, _PAUSE = 1800.0, 0.02


class Soaked(NamedTuple):
    """What came of a soak.

    Attributes:
        failed: tasks that are over, and not completed.
        longest: seconds from the start of a server until it answered.
    """

    tasks: int
    completed: int
    lost: int
    doubled: int
    failed: int
    kills: int
    longest: float
    seconds: float

    @property
    def good(self) -> bool:
        """Whether each task was done once."""
        return (self.completed, self.lost, self.doubled, self.failed) == (self.tasks, 0, 0, 0)


class _Killed:
    """The server, which is killed every so many seconds, and started again."""

    def __init__(self, lab: Lab, env: dict[str, str], every: float) -> None:
        self._lab, self._env, self._every = lab, env, every
        self._over = threading.Event()
        self.kills, self.longest = 0, 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        """Let it be killed no more, and end."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            words = [sys.executable, "-P", "-m", "swarm", "serve"]
            made = subprocess.Popen(words, cwd=self._lab.root, env=self._env, stderr=subprocess.DEVNULL)
            while not (_answers(self._lab) or self._over.wait(_PAUSE)):
                pass  # on a busy machine, too, each server gets to work
            self.longest = max(self.longest, time.monotonic() - began)
            self._over.wait(self._every)
            made.send_signal(signal.SIGTERM if self._over.is_set() else signal.SIGKILL)
            made.wait()
            self.kills += made.returncode == -signal.SIGKILL


def soak(lab: Lab, tasks: int, agents: int, every: float) -> Soaked:
    """Send tasks to agents while the server is killed; return what came of it."""
    began = time.monotonic()
    ledger = lab.root.parent / "ledger"
    # Outside of the repository, where a file may take the box of an agent away: what it does is to be seen.
    servers = init_dir(lab.root.parent / "servers", mode=0o700, environ=lab.env)
    script = lab.root.parent / "work.sh"
    script.write_text(f'read -r name\nprintf "%s\\n" "$name" >> "{ledger}"\n')
    for number in range(agents):
        file = servers / "agents" / f"a{number}" / "config.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"port": 9000, "command": f"sh {script}", "sandbox": {"enabled": False}}))
    token = credentials.token(servers).decode()
    left: queue.Queue[int] = queue.Queue()
    for number in range(tasks):
        left.put(number)
    server = _Killed(lab, lab.env | {"SWARM_ROOT": str(servers)}, every)
    try:
        senders = [threading.Thread(target=_send, args=(lab, token, left, agents)) for _ in range(4)]
        for one in senders:
            one.start()
        for one in senders:
            one.join()
        _await_all(lab.swarm, tasks)
    finally:
        server.end()
    return _judged(lab.swarm, ledger, tasks, server, time.monotonic() - began)


def _send(lab: Lab, token: str, left: queue.Queue[int], agents: int) -> None:
    """Send tasks, each until a server says that it has it."""
    while True:
        try:
            number = left.get_nowait()
        except queue.Empty:
            return
        said = {"prompt": f"task-{number}\n", "agent": f"a{number % agents}"}
        while _ask(lab, token, said, f"key-{number}") != 201:
            time.sleep(_PAUSE)


def _ask(lab: Lab, token: str, said: dict[str, Any], key: str) -> int:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}
    return _request(lab, "POST", "/tasks", json.dumps(said), headers)


def _answers(lab: Lab) -> bool:
    return _request(lab, "GET", "/status", None, {}) == 200


def _request(lab: Lab, method: str, path: str, body: str | None, headers: dict[str, str]) -> int:
    """Make one request; return the status, 0 where nobody answered."""
    now = serving.status(lab.root)
    if now is None:
        return 0
    one = http.client.HTTPConnection("127.0.0.1", now.port, timeout=60)
    with contextlib.closing(one), contextlib.suppress(OSError, http.client.HTTPException):
        one.request(method, path, body, headers)
        return one.getresponse().status
    return 0


def _await_all(swarm: Swarm, tasks: int) -> None:
    """Wait until so many tasks are over; only the server starts them."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if swarm.tasks.advance(dispatch=False) >= 0 and swarm.tasks.history(1, 1).total >= tasks:
            return
        time.sleep(0.2)


def _judged(swarm: Swarm, ledger: Path, tasks: int, server: _Killed, seconds: float) -> Soaked:
    names = Counter(ledger.read_text().splitlines() if ledger.exists() else [])
    states = Counter(str(one.state) for one in swarm.tasks.list(finished=True))
    return Soaked(
        tasks,
        states["completed"],
        lost=sum(f"task-{number}" not in names for number in range(tasks)),
        doubled=sum(count > 1 for count in names.values()),
        failed=sum(states.values()) - states["completed"],
        kills=server.kills,
        longest=round(server.longest, 2),
        seconds=round(seconds, 1),
    )


def main() -> int:
    """Soak, print the verdict, and return the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/soak")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two kills of the server")
    wish = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        lab = Lab(folder)
        lab.env["SWARM_TASKS_KEEP"] = os.environ["SWARM_TASKS_KEEP"] = str(wish.tasks + 100)
        found = soak(lab, wish.tasks, wish.agents, wish.every)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(f"{'good' if found.good else 'BAD'}: {json.dumps(found._asdict())}\n")
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
