"""The thin door of an agent: lines from its program to the server of its repository, and back.

    program ── stdin, stdout ── this ── .swarm/server/socket ── the server, which sees who this is
                                  └──── no server: this process becomes a door that serves by itself

The server may end, and another one begin: the door stays, because programs do not start a dead one again.  It
repeats the handshake to the next server, or to a door of its own where there is none.  A call that was under way is
answered with an error, and never made a second time.

The standard library alone, and little of it: one of these runs beside each agent.
"""

from __future__ import annotations

import os
import select
import sys
from signal import SIG_DFL, SIGINT, signal
from socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket, socketpair

from swarm.machine import records

#: Below the state of a repository or a swarm directory.
FOLDER, SOCKET = "server", "socket"
#: The first line to the server; it answers with one, too.
HELLO = "swarm-door"
_PIECE = 1 << 16
_REFUSED, _ENVIRONMENT = 4, 5
#: So long a door waits for the next server, before it serves by itself.
_PATIENCE, _PAUSE = 1.0, 0.05
#: Requests that can be made again without harm.
_HARMLESS = frozenset({"initialize", "ping", "server/discover", "tools/list", "prompts/list", "resources/list"})
_INITIALIZE, _INITIALIZED = "initialize", "notifications/initialized"
_LOST = "the server of this repository ended during the call; whether it was done is unknown: look, then call again"


class Refused(Exception):
    """The server does not take this process for that agent."""


def main(args: list[str]) -> int:
    """Serve until the program is gone; return the exit status."""
    signal(SIGINT, SIG_DFL)
    root, agent = args
    try:
        server = _connect(root, agent)
    except Refused as refused:
        _say(f"error: {refused}")
        return _REFUSED
    if server is None:
        command = alone(root, agent)
        os.execv(command[0], command)  # noqa: S606  # no shell
    return _Door(root, agent, server).run()


def alone(root: str, agent: str) -> list[str]:
    """Return the command of a door that serves by itself."""
    return [sys.executable, "-P", "-m", "swarm.mcp_door", root, agent]


def _say(text: str) -> None:
    os.write(2, f"{text}\n".encode("utf-8", "backslashreplace"))


def _connect(root: str, agent: str) -> socket | None:
    """Return a connection to the server; None without one.

    Raises:
        Refused: it says that this process is not that agent.
    """
    made = socket(AF_UNIX, SOCK_STREAM)
    try:
        _reach(made, f"{records.state_of(root)}/{FOLDER}")
        made.sendall(records.line({"hello": HELLO, "agent": agent}))
        answer = _first_line(made)
    except OSError:
        made.close()
        return None
    found = _object(answer)
    if found.get("ok") is True:
        return made
    made.close()
    if isinstance(found.get("error"), str):
        raise Refused(str(found["error"]))
    return None


def _reach(made: socket, folder: str) -> None:
    """Connect by a short name: the kernel takes no long path."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(folder)
        made.connect(SOCKET)
    finally:
        os.fchdir(here)
        os.close(here)


def _first_line(made: socket) -> bytes:
    made.settimeout(10.0)
    data = b""
    while not data.endswith(b"\n"):
        piece = made.recv(1)
        if not piece:
            break
        data += piece
    made.settimeout(None)
    return data


def _object(line: bytes) -> dict[str, object]:
    try:
        found = records.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class _Lines:
    """Whole lines of what comes in pieces."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def take(self, piece: bytes) -> list[bytes]:
        """Return the lines that a piece completes, with their ends."""
        if b"\n" not in piece:
            self._rest.append(piece)
            return []
        *whole, rest = (b"".join(self._rest) + piece).split(b"\n")
        self._rest = [rest] if rest else []
        return [one + b"\n" for one in whole]


class _Door:
    """One program's door.

    Attributes:
        _open: requests without an answer: id → (line, method).
    """

    def __init__(self, root: str, agent: str, server: socket) -> None:
        self._root = root
        self._agent = agent
        self._server = server
        self._open: dict[object, tuple[bytes, str]] = {}
        self._handshake: dict[str, bytes] = {}
        self._answered = False
        self._swallow: object = None
        self._ended = False
        self._heard = _Lines()

    def run(self) -> int:
        """Hand lines on until the program has gone; return the exit status."""
        said = _Lines()
        while True:
            poll = select.poll()
            poll.register(self._server.fileno(), select.POLLIN)
            if not self._ended:
                poll.register(0, select.POLLIN)
            ready = dict(poll.poll())
            # The server first: what the program says now is for the next one, if this one has just ended.
            if self._server.fileno() in ready and not self._pass_on(self._receive()):
                return 0 if self._ended else _ENVIRONMENT
            if 0 in ready:
                self._hear(os.read(0, _PIECE), said)

    def _hear(self, piece: bytes, said: _Lines) -> None:
        """Take what the program says; nothing is its end."""
        for line in said.take(piece):
            self._to_server(line)
        if not piece:
            self._ended = True
            self._finish()

    def _pass_on(self, piece: bytes) -> bool:
        """Take what the server says; return whether there is a server."""
        if piece:
            for line in self._heard.take(piece):
                self._to_program(line)
            return True
        self._heard = _Lines()
        return not self._ended and self._reconnect()

    def _receive(self) -> bytes:
        try:
            return self._server.recv(_PIECE)
        except OSError:
            return b""

    def _finish(self) -> None:
        try:
            self._server.shutdown(SHUT_WR)
        except OSError:
            self._server.close()

    def _to_server(self, line: bytes) -> None:
        told = _object(line)
        method = told.get("method")
        if isinstance(method, str) and isinstance(told.get("id"), int | str):
            self._open[told["id"]] = (line, method)
        if method in (_INITIALIZE, _INITIALIZED):
            self._handshake[str(method)] = line
        self._send(line)

    def _send(self, line: bytes) -> None:
        try:
            self._server.sendall(line)
        except OSError:
            return  # its end is seen when it is read from, and the request is still open then

    def _to_program(self, line: bytes) -> None:
        told = _object(line)
        if "method" not in told and "id" in told:
            if self._swallow is not None and told["id"] == self._swallow:
                self._swallow = None
                self._send(self._handshake.get(_INITIALIZED, b""))
                return
            one = told["id"]
            known = self._open.pop(one, None) if isinstance(one, int | str) else None
            self._answered |= known is not None and known[1] == _INITIALIZE
        _write(line)

    def _reconnect(self) -> bool:
        """Find another server, or start a door that serves by itself; whether there is one."""
        self._server.close()
        again = [line for line, method in self._open.values() if method in _HARMLESS]
        for one, (_, method) in list(self._open.items()):
            if method not in _HARMLESS:
                del self._open[one]
                _write(_failure(one, method))
        found = self._next()
        if found is None:
            return False
        self._server = found
        first = self._handshake.get(_INITIALIZE)
        if first is not None and self._answered:
            self._swallow = _object(first).get("id")
            self._send(first)
        for line in again:
            self._send(line)
        return True

    def _next(self) -> socket | None:
        for _ in range(int(_PATIENCE / _PAUSE)):
            try:
                found = _connect(self._root, self._agent)
            except Refused as refused:
                _say(f"error: {refused}")
                return None
            if found is not None:
                return found
            select.poll().poll(int(_PAUSE * 1000))
        mine, its = socketpair()
        child = os.fork()
        if child == 0:
            _become(its.fileno(), alone(self._root, self._agent))
        its.close()
        return mine


def _become(end: int, command: list[str]) -> None:
    """Be another door from now on, which talks through a socket."""
    try:
        os.dup2(end, 0)
        os.dup2(end, 1)
        os.execv(command[0], command)  # noqa: S606  # no shell
    finally:
        os._exit(_ENVIRONMENT)


def _failure(one: object, method: str) -> bytes:
    """Return the answer to a request that was under way."""
    text = f'"{_LOST}"'
    number = records.line({"id": one})[len('{"id": ') : -2].decode()
    if method == "tools/call":
        content = f'"content": [{{"type": "text", "text": {text}}}]'
        error = f'"structuredContent": {{"error": {{"code": "SERVER_LOST", "message": {text}, "hint": "call again"}}}}'
        said = f'"result": {{{content}, {error}, "isError": true}}'
    else:
        said = f'"error": {{"code": -32000, "message": {text}}}'
    return f'{{"jsonrpc": "2.0", "id": {number}, {said}}}\n'.encode()


def _write(line: bytes) -> None:
    """Write to the program; one that is gone ends this process by its signal."""
    while line:
        line = line[os.write(1, line) :]
