"""An agent that does what a test says: it starts processes below its supervisor, joined to the test by pipes.

test ── unix socket, descriptors ──► puppet (the agent's program) ──► process, for example a door
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.testing.panes import PaneLab

#: The program of such an agent: one thread for each process that it is asked for.
PROGRAM = """#!{python}
import json, os, socket, subprocess, threading

def serve(one):
    data, fds, _, _ = socket.recv_fds(one, 1 << 20, 3)
    asked = json.loads(data)
    env = {{**os.environ, **asked["env"]}} if asked["keep"] else asked["env"]
    made = subprocess.Popen(asked["argv"], stdin=fds[0], stdout=fds[1], stderr=fds[2], env=env, cwd=asked["cwd"])
    for fd in fds:
        os.close(fd)
    one.sendall(f"{{made.pid}}\\n".encode())
    one.sendall(f"{{made.wait()}}\\n".encode())
    one.close()

place = "{folder}/" + os.environ["SWARM_ACTOR"] + "@" + os.environ["SWARM_SESSION"]
door = socket.socket(socket.AF_UNIX)
if os.path.exists(place + ".new"):
    os.unlink(place + ".new")
door.bind(place + ".new")
door.listen(64)
os.rename(place + ".new", place)  # also in the place of one that ended
while True:
    threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
"""


class Started:
    """A process below the agent: what it reads and writes is in the test's hands."""

    def __init__(self, control: socket.socket, ends: Sequence[int]) -> None:
        self._control = control
        self._answers = control.makefile("r", encoding="ascii")
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(fd, mode) for fd, mode in zip(ends, ("wb", "rb", "rb"), strict=True)
        )
        self.pid = int(self._answers.readline())

    def wait(self) -> int:
        """Return its exit status; a negative number is a signal."""
        return int(self._answers.readline())

    def close(self) -> None:
        """Let go of it: its input ends."""
        for one in (self.stdin, self.stdout, self.stderr):
            if not one.closed:
                one.close()
        self._answers.close()
        self._control.close()


class Puppets:
    """The agents of a laboratory that do what the test says.

    Args:
        folder: of their sockets; it must be short, and agents in boxes must see it.
    """

    def __init__(self, lab: PaneLab, folder: Path | None = None) -> None:
        self.lab = lab
        self._folder = folder or lab.tmux.folder
        self.program = lab.program("puppet", PROGRAM.format(python=sys.executable, folder=self._folder))

    def start(self, session: str, roles: str, **options: Any) -> None:
        """Start a session of puppets."""
        self.lab.swarm.start(session, roles, program="command", command=[str(self.program)], **options)

    def run(
        self,
        agent: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        keep: bool = True,
        cwd: str | None = None,
    ) -> Started:
        """Start a process below an agent (``name@session``).

        Args:
            env: added to the agent's environment.
            keep: False: instead of the agent's environment.
        """
        control = socket.socket(socket.AF_UNIX)
        wait_for(lambda: control.connect_ex(str(self._folder / agent)) == 0, f"the puppet {agent}", 60)
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        asked = {"argv": list(argv), "env": dict(env or {}), "keep": keep, "cwd": cwd}
        socket.send_fds(control, [json.dumps(asked).encode()], theirs)
        for fd in theirs:
            os.close(fd)
        return Started(control, [pipes[0][1], pipes[1][0], pipes[2][0]])

    def done(self, agent: str, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a process below an agent to its end."""
        made = self.run(agent, argv, **options)
        made.stdin.close()
        out, err = made.stdout.read().decode(), made.stderr.read().decode()
        code = made.wait()
        made.close()
        return subprocess.CompletedProcess(list(argv), code, out, err)

    @contextmanager
    def door(self, agent: str, name: str = "", socket: str = "", **options: Any) -> Iterator[Door]:
        """Open an agent's door, as its program does.

        Args:
            socket: in a box: that of its supervisor.
        """
        root = str(self.lab.root)
        from swarm.machine.mcp import door

        argv = [sys.executable, "-I", "-S", door.__file__, root, name or agent.partition("@")[0]]
        argv += [socket] if socket else []
        made = Door(self.run(agent, argv, **options))
        try:
            yield made
        finally:
            made.close()


class Door:
    """The program's side of a door on stdin and stdout: JSON-RPC, a line each."""

    def __init__(self, process: Started) -> None:
        self.process = process
        self.notices: list[dict[str, Any]] = []
        self._number = 0
        self._answers: dict[Any, dict[str, Any]] = {}
        self._rest = b""

    def hello(self, version: str = "2025-06-18") -> dict[str, Any]:
        """Shake hands; return what the server says of itself."""
        client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        found = self.ask("initialize", client)
        self.tell("notifications/initialized")
        return found

    def ask(self, method: str, params: dict[str, Any] | None = None, *, timeout: float = 60) -> dict[str, Any]:
        """Make a request and return its result."""
        return self.answer(self.begin(method, params), timeout=timeout)

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Make a request; return its number."""
        self._number += 1
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})
        return self._number

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        self.say({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def say(self, message: object) -> None:
        """Write a line."""
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, tool: str, *, timeout: float = 60, **given: Any) -> dict[str, Any]:
        """Call a tool; return its structured content, in which an error has the key ``error``."""
        found = self.ask("tools/call", {"name": tool, "arguments": given}, timeout=timeout)
        assert bool(found.get("isError")) == ("error" in found["structuredContent"]), found
        content: dict[str, Any] = found["structuredContent"]
        return content

    def tools(self) -> dict[str, dict[str, Any]]:
        """Return the offered tools by name."""
        return {one["name"]: one for one in self.ask("tools/list")["tools"]}

    def answer(self, number: int, *, timeout: float = 60) -> dict[str, Any]:
        """Return the result of a request; an error is the dictionary that has only the key ``rpc_error``."""
        until = time.monotonic() + timeout
        while number not in self._answers:
            left = until - time.monotonic()
            assert left > 0, f"no answer to request {number}"
            self._read(left)
        found = self._answers.pop(number)
        result: dict[str, Any] = found["result"] if "result" in found else {"rpc_error": found["error"]}
        return result

    def _read(self, seconds: float) -> None:
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return
        piece = os.read(self.process.stdout.fileno(), 1 << 16)
        assert piece, f"the door ended: {self.process.stderr.read().decode()}"
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            found = json.loads(line)
            if "method" in found:
                self.notices.append(found)
            else:
                self._answers[found["id"]] = found

    def close(self) -> None:
        """Go away, as a program that ends."""
        self.process.close()
