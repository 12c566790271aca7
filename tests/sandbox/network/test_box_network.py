"""A box with a network of its own: its loopback is served from outside, and leads nowhere else (issue 16, point 7)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm.machine.run_folder.decisions import FILE
from swarm.programs.values import LaunchSpec
from swarm.sandbox import command, machine
from swarm.sandbox.values import Box
from swarm.testing.terminal import wait_for
from tests.sandbox.supervised import PORTS, Network

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120), pytest.mark.usefixtures("boxes")]


class Supervised:
    """A program in a box with a network."""

    def __init__(self, folder: Path, script: str, ports: tuple[int, ...] = PORTS) -> None:
        self.folder = folder
        for name in ("tree", "home", "run"):
            (folder / name).mkdir()
        box = Box(str(folder / "tree"), str(folder / "home"), machine.system(), ports=ports)
        spec = LaunchSpec(("python3", "-c", script), {"PATH": "/usr/bin:/bin"}, {})
        made = command.wrap(spec, box, str(folder / "run"), command.find(os.environ))
        for name, text in made.files.items():
            (folder / "run" / name).write_text(text)
        self.network = Network(folder / "run")
        self.process = subprocess.Popen(
            made.argv,
            env=self.network.env,
            pass_fds=[self.network.fd],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.network.looked.begun()
        self.network.__enter__()

    def said(self) -> str:
        """Return what the program says until it ends."""
        return self.process.communicate(timeout=60)[0].decode()

    def noted(self) -> list[str]:
        """Wait for the first note, which comes when it comes: the program need not wait for it."""
        wait_for(self.decisions, "a note of the supervisor's or the proxy's", 60)
        return self.decisions()

    def decisions(self) -> list[str]:
        try:
            lines = (self.folder / "run" / FILE).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line)["reason"] for line in lines]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.network.__exit__()


@pytest.fixture
def boxes_of(tmp_path: Path) -> Iterator[list[Supervised]]:
    made: list[Supervised] = []
    yield made
    for one in made:
        one.close()


ASK = """
import socket
def ask(port, words):
    made = socket.create_connection(("127.0.0.1", port), 30)
    made.sendall(words); found = b""
    while piece := made.recv(4096): found += piece
    return found.split(b" ")[1].decode()
"""


def test_the_loopback_of_a_box_is_served_from_outside(boxes_of: list[Supervised], tmp_path: Path) -> None:
    script = ASK + (
        "print(ask(3128, b'CONNECT evil.org:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'),"
        " ask(3129, b'GET /m/x HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'),"
        " ask(3129, b'GET /m/y HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'))"
    )
    boxes_of.append(Supervised(tmp_path, script))

    assert boxes_of[0].said() == "403 502 403\n"
    assert boxes_of[0].noted()[0] == "is not an allowed host"


def test_nothing_else_is_reached(boxes_of: list[Supervised], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = ASK + (
            "import os\n"
            "def closed(f):\n"
            "    try: f()\n"
            "    except OSError: return True\n"
            f"print(closed(lambda: socket.create_connection(('127.0.0.1', {port}), 5)),\n"
            " closed(lambda: socket.create_connection(('1.1.1.1', 443), 5)),\n"
            " closed(lambda: socket.getaddrinfo('example.org', 443)),\n"
            f" ask(3128, b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'),\n"
            f" ask(3128, b'CONNECT localhost:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'),\n"
            f" ask(3128, b'GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'),\n"
            " [os.readlink(fd) for fd in map('/proc/self/fd/{}'.format, range(3, 50)) if os.path.lexists(fd)])"
        )
        boxes_of.append(Supervised(tmp_path, script))

        said = boxes_of[0].said()

        assert said.startswith("True True True 403 403 403 ")
        assert said.endswith(" []\n")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_proxy_that_ends_is_started_again(boxes_of: list[Supervised], tmp_path: Path) -> None:
    script = ASK + (
        "import time\n"
        "print(ask(3128, b'CONNECT a.org:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'), flush=True)\n"
        "open('asked', 'w').close()\n"
        "while not os.path.exists('killed'): time.sleep(0.05)\n"
        "print(ask(3128, b'CONNECT b.org:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'))"
    ).replace("import time", "import os, time")
    one = Supervised(tmp_path, script)
    boxes_of.append(one)

    wait_for((tmp_path / "tree/asked").exists, "the first request", 60)
    for chore in list(one.network.chores._running.values()):
        chore.kill()
    (tmp_path / "tree/killed").touch()

    assert one.said() == "403\n403\n"
    wait_for(lambda: "the proxy ended with status -1" in one.decisions(), "the note that the proxy ended", 60)


def test_one_that_says_nothing_costs_no_process(boxes_of: list[Supervised], tmp_path: Path) -> None:
    boxes_of.append(Supervised(tmp_path, "print('done')"))

    assert boxes_of[0].said() == "done\n"
    assert boxes_of[0].network.looked._chore is None


def test_without_the_helpers_word_the_box_starts_with_no_network(boxes_of: list[Supervised], tmp_path: Path) -> None:
    """Port 0 twice is fine; a port that is no port stops the helper."""
    script = "import socket\ntry: socket.create_connection(('127.0.0.1', 3128), 5)\nexcept OSError: print('closed')"
    boxes_of.append(Supervised(tmp_path, script, ports=(3128, 3128)))

    assert boxes_of[0].said() == "closed\n"
    assert "the box has no network: OSError" in boxes_of[0].noted()[0]
