"""The part of the server that speaks MCP: loaded when the first agent calls, as it weighs more than all the rest."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator
    from pathlib import Path

    from swarm.mcp_door.connections import Doors
    from swarm.mcp_door.loopback import Guard

#: The endpoint of an agent.
PATH = re.compile(r"/agents/([A-Za-z0-9][A-Za-z0-9_@-]{0,99})/mcp")
#: The longest line of a door, as of HTTP's bodies.
_LONGEST = 4 << 20


class Lazily:
    """The MCP endpoints of one repository: the doors of agents on its socket, and ``/agents/NAME/mcp`` by HTTP.

    Args:
        port: of the server on 127.0.0.1.
    """

    def __init__(self, root: Path, port: int) -> None:
        self._root = root
        self._port = port
        self._loading = asyncio.Lock()
        self._parts: tuple[Doors, Guard] | None = None
        self._end = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def listening(self, listener: socket.socket) -> AsyncIterator[None]:
        """Take connections of doors; at the end all calls end."""
        accepting = await asyncio.start_unix_server(self._connected, sock=listener, limit=_LONGEST)
        try:
            yield
        finally:
            accepting.close()
            if self._parts is not None:
                await self._parts[0].close()
            self._end.set()
            if self._running is not None:
                await self._running

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        doors, _ = await self._loaded()
        await doors.connected(reader, writer)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        _, guard = await self._loaded()
        await guard(scope, receive, send)

    async def _loaded(self) -> tuple[Doors, Guard]:
        async with self._loading:
            if self._parts is None:
                server = await asyncio.to_thread(_build)
                from swarm.mcp_door.connections import Doors
                from swarm.mcp_door.loopback import manager_of

                doors = Doors(server, self._root)
                manager, guard = manager_of(server, self._root, self._port, doors.pool)
                begun = asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, begun))
                await begun.wait()
                self._parts = (doors, guard)
            return self._parts

    async def _run(self, manager: Any, begun: asyncio.Event) -> None:
        async with manager.run():
            begun.set()
            await self._end.wait()


def _build() -> Any:
    """Load the SDK, which takes a while, and return the server."""
    from swarm.mcp_door import connections, loopback, server  # noqa: F401  # both are used as soon as it is there

    return server.build()
