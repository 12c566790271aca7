"""A served agent: how soon it answers, what it weighs, and how many requests a core of this machine takes."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT = 60.0
_NAME = "bench"


class _Server:
    """A served agent, and the port that it has."""

    def __init__(self, root: Path, env: dict[str, str]) -> None:
        self.root = root
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        words = ["agent", "serve", "--name", _NAME, "--port", str(self.port), "--agent-cmd", "cat"]
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "swarm", *words], cwd=root, env=env, stderr=subprocess.DEVNULL
        )

    def connected(self) -> float:
        """Return after how many milliseconds it took a connection."""
        while time.monotonic() < self.began + _WAIT:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return (time.monotonic() - self.began) * 1000
        raise TimeoutError(self.port)

    def answered(self) -> float:
        """Return after how many milliseconds it answered."""
        one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_WAIT)
        one.request("GET", "/status")
        assert one.getresponse().status == 200
        one.close()
        return (time.monotonic() - self.began) * 1000

    def cpu(self) -> float:
        """Return the seconds of processor that it has used."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """Return its resident memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

    def a_core(self, count: int, method: str, path: str, body: bytes | None, status: int) -> float:
        """Return how many such requests a second a core takes: by the processor that it used for them."""
        token = (self.root / ".swarm/credentials/api-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} if body else {}
        one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_WAIT)
        before = self.cpu()
        for _ in range(count):
            one.request(method, path, body, headers)
            answer = one.getresponse()
            answer.read()
            assert answer.status == status
        used = self.cpu() - before
        one.close()
        return count / max(used, 0.01)


@contextlib.contextmanager
def _serving(root: Path, env: dict[str, str]) -> Iterator[_Server]:
    server = _Server(root, env)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def run(*, quick: bool) -> list[dict[str, object]]:
    """Measure."""
    count, starts, rest = (200, 1, 1.0) if quick else (5000, 7, 20.0)
    with scratch.folder() as top:
        env = scratch.environment(top)
        root = top / "project"
        for words in (["init", "-q", str(root)], ["-C", str(root), "commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run(["git", *words], env=env, check=True)
        times = []
        for _ in range(starts):
            with _serving(root, env) as server:
                times.append((server.connected(), server.answered()))
        with _serving(root, env) as server:
            server.connected()
            server.answered()
            gets = server.a_core(count, "GET", "/status", None, 200)
            posts = server.a_core(count, "POST", "/task", b'{"prompt": ""}', 400)
            before = server.cpu()
            time.sleep(rest)
            idle = (server.cpu() - before) / rest * 100
            weight = server.megabytes()
    connect, first = (statistics.median(one) for one in zip(*times, strict=True))
    return [
        _row("start to connected, ms", connect, None),
        _row("start to first answer, ms", first, 500),
        _row("memory at rest, MB", weight, 70),
        _row("at rest, % of a core", idle, 1),
        _row("GET /status, a second and core", gets, 3000),
        _row("refused POST /task, a second and core", posts, 2000),
    ]


def _row(what: str, value: float, goal: float | None) -> dict[str, object]:
    return {"what": what, "value": round(value, 1), "goal": goal}


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows as text."""
    lines = [f"{'a served agent':40} {'found':>10} {'goal':>8}"]
    lines += [f"{row['what']!s:40} {row['value']!s:>10} {row['goal'] or '-'!s:>8}" for row in rows]
    return lines
