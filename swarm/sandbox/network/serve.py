"""The process that serves the network of one box: ``python -m swarm.sandbox.network.serve PROXY DOOR``.

PROXY and DOOR are descriptors that listen on the loopback of the box.  What is allowed, and the credentials, stand on
the standard input, as JSON: neither a command line nor an environment shows them.  The agent's supervisor starts it
when somebody connects, and again if it ends; the listening descriptors stay open there, so that no connection is lost.
It ends by itself when nobody has been connected for a while, and when its supervisor is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from swarm.machine.run_folder.decisions import Decisions
from swarm.programs.model_access import Service, TokenFile
from swarm.sandbox.network import policy
from swarm.sandbox.network.door import Door
from swarm.sandbox.network.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

#: So many connections of each kind are served at once; further ones wait.
_MOST = 128
_IDLE_SECONDS = 300.0
_LOOK_EVERY = 1.0


class Listener:
    """Accepts connections, no more at once than can be served."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._free = asyncio.Semaphore(_MOST)
        self._tasks: set[asyncio.Task[None]] = set()
        self.used_at = asyncio.get_running_loop().time()

    @property
    def busy(self) -> bool:
        """Whether somebody is connected."""
        return bool(self._tasks)

    async def run(self, listening: socket.socket) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._free.acquire()
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError:  # it went before it was accepted
                self._free.release()
                continue
            self.used_at = loop.time()
            task = asyncio.create_task(self._one(accepted))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._free.release()
        self.used_at = asyncio.get_running_loop().time()

    async def _one(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=accepted)
        await self._serve(reader, writer)


async def serve(spec: dict[str, Any], listening: list[socket.socket], *, idle: float = _IDLE_SECONDS) -> None:
    """Serve until nobody was connected for *idle* seconds, or who started this is gone: then so is the box."""
    parent = spec.get("parent") or os.getppid()
    log = Decisions(str(spec["run_dir"]))
    rules = policy.policy(str(spec["network"]), tuple(spec["hosts"]), tuple(spec["private"]), tuple(spec["denied"]))
    listeners = [Listener(Proxy(rules, log).serve), Listener(Door(_services(spec), log).serve)]
    tasks = [asyncio.create_task(one.run(sock)) for one, sock in zip(listeners, listening, strict=True)]
    try:
        loop = asyncio.get_running_loop()
        while any(one.busy for one in listeners) or loop.time() < max(one.used_at for one in listeners) + idle:
            await asyncio.wait(tasks, timeout=min(idle, _LOOK_EVERY))
            if os.getppid() != parent:
                break
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _services(spec: dict[str, Any]) -> list[Service]:
    return [
        Service(**{**one, "token": TokenFile(**one["token"]) if one.get("token") else None}) for one in spec["services"]
    ]


def main(argv: list[str]) -> None:
    """Read what is allowed, and serve."""
    spec = json.load(sys.stdin)
    listening = [socket.socket(fileno=int(word)) for word in argv]
    for one in listening:
        one.setblocking(False)  # noqa: FBT003  # the word of the socket
    asyncio.run(serve(spec, listening))


if __name__ == "__main__":
    main(sys.argv[1:])
