"""The process that serves a box's network takes over listening descriptors, and ends when idle (issue 16, point 7)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.machine.run_folder.decisions import FILE, Decisions
from tests.sandbox.network.served import say, status

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

START = (sys.executable, "-P", "-m", "swarm.sandbox.network.serve")


def test_it_serves_what_waits_and_its_words_are_nowhere_to_be_seen(tmp_path: Path) -> None:
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    services = [{"name": "m", "upstream": "http://127.0.0.1:1", "allowed": ["GET /x"], "headers": {"k": "S3CRET"}}]
    spec = {
        "run_dir": str(tmp_path),
        "network": "model",
        "hosts": [],
        "private": [],
        "denied": [],
        "services": services,
    }
    fds = [str(one.fileno()) for one in listening]
    waiting = socket.create_connection(listening[0].getsockname())
    waiting.sendall(b"CONNECT evil.org:443 HTTP/1.1\r\nHost: evil.org\r\n\r\n")

    process = subprocess.Popen([*START, *fds], stdin=subprocess.PIPE, pass_fds=[int(fd) for fd in fds])
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(spec).encode())
        process.stdin.close()
        assert b" 403 " in waiting.recv(65536)
        assert status(say(listening[1].getsockname()[1], b"GET /m/x HTTP/1.1\r\nHost: a\r\n\r\n")) == 502
        for name in ("cmdline", "environ"):
            with open(f"/proc/{process.pid}/{name}", "rb") as file:
                assert b"S3CRET" not in file.read()
    finally:
        process.kill()
        process.wait()
        for one in (*listening, waiting):
            one.close()
    logged = (tmp_path / FILE).read_text().splitlines()
    assert [json.loads(line)["target"] for line in logged] == ["evil.org:443"]
    assert os.stat(tmp_path / FILE).st_mode & 0o777 == 0o600


def test_it_ends_when_nobody_is_connected(tmp_path: Path) -> None:
    script = (
        "import asyncio, socket; from swarm.sandbox.network import serve\n"
        "made = [socket.create_server(('127.0.0.1', 0)) for _ in range(2)]\n"
        "for one in made: one.setblocking(False)\n"
        f"spec = {{'run_dir': {str(tmp_path)!r}, 'network': 'none', 'hosts': [], 'private': [], 'denied': [],"
        " 'services': []}\n"
        "asyncio.run(serve.serve(spec, made, idle=0.2))"
    )

    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


def test_the_log_is_rolled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarm.machine.run_folder.decisions._ROLL_AT", 300)
    log = Decisions(str(tmp_path))
    for number in range(5):
        log.note("proxy", f"host{number}:443", "no", allowed=False)

    assert "host4" in "".join(path.read_text() for path in tmp_path.iterdir())
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1000
