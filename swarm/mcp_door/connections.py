"""Doors that connect by the socket of the repository: who is at the other end, then lines of JSON-RPC both ways."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from swarm import SwarmError
from swarm.api import serving
from swarm.listening import places
from swarm.mcp_door.server import CLIENT

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel.server import Server

_HELLO_SECONDS = 10.0


class Doors:
    """The connections of one server."""

    def __init__(self, server: Server[Any], root: Path) -> None:
        self.pool = serving.Pool(root)
        self._server = server
        self._root = root
        self._open: set[asyncio.Task[None]] = set()
        self._ends = False

    async def close(self) -> None:
        """End all of them."""
        self._ends = True
        for one in self._open:
            one.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one, to its end."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # for the type checker
        self._open.add(task)
        try:
            client = await self._greet(reader, writer)
            if client is not None:
                CLIENT.set(client)
                await self._serve(reader, writer)
        except (TimeoutError, OSError, ValueError):
            pass  # it is gone, or said what is no line
        except asyncio.CancelledError:
            pass  # the server ends
        finally:
            self._open.discard(task)
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> serving.Client | None:
        """Find out which agent is at the other end; one that says another name is told so, and let go."""
        pid = places.peer(writer.get_extra_info("socket"))
        line = await asyncio.wait_for(reader.readline(), _HELLO_SECONDS)
        told = json.loads(line)
        name = told.get("agent") if isinstance(told, dict) else None
        try:
            client = await asyncio.to_thread(serving.peer, self.pool, self._root, pid, str(name))
        except SwarmError as problem:
            writer.write(json.dumps({"error": problem.message}).encode() + b"\n")
            await writer.drain()
            return None
        writer.write(b'{"ok": true}\n')
        return client

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said_in, said = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        answers, answered = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:
            group.start_soon(_read, reader, said_in)
            group.start_soon(self._write, writer, answered)
            await self._server.run(said, answers, self._server.create_initialization_options())
            group.cancel_scope.cancel()

    async def _write(self, writer: asyncio.StreamWriter, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with answers:
            async for one in answers:
                if self._ends:
                    continue  # the door answers what is open, in the same words as after a kill
                writer.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await writer.drain()


async def _read(reader: asyncio.StreamReader, said: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    async with said:
        while line := await reader.readline():
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError as problem:
                await said.send(problem)
            else:
                await said.send(SessionMessage(message))
