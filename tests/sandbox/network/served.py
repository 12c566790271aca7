"""A proxy and a door on loopback, a server behind them that notes what it hears, and a client that says anything."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

from swarm.machine.run_folder.decisions import FILE, Decisions
from swarm.sandbox.network import policy
from swarm.sandbox.network.door import Door
from swarm.sandbox.network.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from swarm.programs.model_access import Service

    Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

LOOPBACK = "127.0.0.0/8"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nset-cookie: a=b\r\nconnection: keep-alive\r\n\r\nhello"


class Served:
    """Both, in a thread, with what they log and what the server behind them hears.

    Attributes:
        looked_up: the names that were looked up.
        heard: the bytes of each connection to the server.
        errors: what no part of the program caught.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.looked_up: list[str] = []
        self.heard: list[bytes] = []
        self.errors: list[str] = []
        self.addresses: list[list[str]] = []
        self.answer = ANSWER
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self.errors.append(str(context)))
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._servers: list[asyncio.Server] = []
        self._thread.start()
        self.upstream = self.listen(self._hear)

    def listen(self, handler: Handler) -> int:
        """Serve on a free port and return it."""
        made = asyncio.run_coroutine_threadsafe(asyncio.start_server(handler, "127.0.0.1", 0), self.loop).result(10)
        self._servers.append(made)
        port: int = made.sockets[0].getsockname()[1]
        return port

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.heard)
        self.heard.append(b"")
        with contextlib.suppress(OSError):
            while piece := await reader.read(65536):
                self.heard[number] += piece
                if b"\r\n\r\n" in self.heard[number]:
                    writer.write(self.answer)
                    await writer.drain()
                    if self.answer.startswith(b"HTTP"):
                        break
        writer.close()

    async def _look_up(self, name: str, port: int) -> list[str]:
        self.looked_up.append(name)
        return self.addresses.pop(0) if self.addresses else ["127.0.0.1"]

    def proxy(self, *hosts: str, private: str = LOOPBACK, network: str = "model") -> int:
        """Serve a proxy that allows some hosts; return its port."""
        rules = policy.policy(network, hosts, (private,) if private else ())
        return self.listen(Proxy(rules, Decisions(str(self.folder)), self._look_up).serve)

    def door(self, *services: Service) -> int:
        """Serve a door to some models; return its port."""
        return self.listen(Door(services, Decisions(str(self.folder))).serve)

    def decisions(self) -> list[dict[str, Any]]:
        """Return what was logged."""
        try:
            return [json.loads(line) for line in (self.folder / FILE).read_text().splitlines()]
        except FileNotFoundError:
            return []

    def reasons(self) -> str:
        return " / ".join(one["reason"] for one in self.decisions() if not one["allowed"])

    def close(self) -> None:
        async def end() -> None:
            for one in self._servers:
                one.close()
            mine = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
            if mine:
                _, left = await asyncio.wait(mine, timeout=5)
                self.errors += [f"still serves: {one}" for one in left]
            for _ in range(3):  # what was closed goes at the next turns of the loop
                await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


def say(port: int, *words: bytes, timeout: float = 15.0) -> bytes:
    """Say something and return the whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout) as made:
        for one in words:
            made.sendall(one)
        return _all(made)


def _all(made: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := made.recv(65536):
            found += piece
    return found


def status(answer: bytes) -> int:
    """Return the status of an answer; 0 without one."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def hello(name: str) -> bytes:
    """Return the first words of TLS to a server."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        made.do_handshake()
    return outgoing.read()


def connect(port: int, target: str, *words: bytes) -> tuple[bytes, bytes]:
    """Ask for a host by CONNECT, say something behind it; return the answer, and what came after it."""
    with socket.create_connection(("127.0.0.1", port), 15) as made:
        made.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head and (piece := made.recv(1)):
            head += piece
        if status(head) != 200:
            return head + _all(made), b""
        with contextlib.suppress(OSError):
            for one in words:
                made.sendall(one)
            made.shutdown(socket.SHUT_WR)
        return head, _all(made)


def each(served: Served) -> Iterator[Served]:
    """Give it, and close it; nothing went wrong in it unseen."""
    try:
        yield served
    finally:
        served.close()
    assert served.errors == []
