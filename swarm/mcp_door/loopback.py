"""The MCP endpoint of each agent by HTTP on this machine: ``/agents/NAME/mcp``, with the agent's token.

Three things have to fit: the token is that of the named agent's last launch; the process at the other end belongs to
that agent, where the machine can show it (Linux); and the request comes from no web page: its Host is this machine's,
and its Origin, if it has one, is the server's own.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from swarm import SwarmError
from swarm.api import serving
from swarm.listening import answers
from swarm.mcp_door.lazily import PATH
from swarm.mcp_door.server import CLIENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from pathlib import Path

    from mcp.server.lowlevel.server import Server

#: So long a peer may take for the body of a request.
_BODY_SECONDS = 30.0


def manager_of(
    server: Server[Any], root: Path, port: int, pool: serving.Pool
) -> tuple[StreamableHTTPSessionManager, Guard]:
    """Return what takes requests, which has to run meanwhile, and the guard in front of it."""
    hosts = [f"127.0.0.1:{port}", f"localhost:{port}"]
    origins = [f"http://{host}" for host in hosts]
    manager = StreamableHTTPSessionManager(
        server,
        stateless=True,  # a client that lived longer than the server goes on with the next one
        security_settings=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    return manager, Guard(manager, root, pool, hosts, origins)


class Guard:
    """Lets a request through when it is shown which agent makes it."""

    def __init__(
        self,
        manager: StreamableHTTPSessionManager,
        root: Path,
        pool: serving.Pool,
        hosts: list[str],
        origins: list[str],
    ) -> None:
        self._manager = manager
        self._root = root
        self._pool = pool
        self._hosts = hosts
        self._origins = origins

    async def __call__(
        self,
        scope: Any,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            client = await self._admitted(scope)
        except Turned as turned:
            await turned.answer(send)
            return
        CLIENT.set(client)

        async def in_time() -> MutableMapping[str, Any]:
            """Take a piece of the body; the wait for the end of the connection has no limit."""
            if done:
                return await receive()
            piece = await asyncio.wait_for(receive(), _BODY_SECONDS)
            if not piece.get("more_body", False):
                done.append(True)
            return piece

        done: list[bool] = []
        with contextlib.suppress(TimeoutError):
            await self._manager.handle_request(scope, in_time, send)

    async def _admitted(self, scope: Any) -> serving.Client:
        """Return the agent that makes a request.

        Raises:
            Turned: it is not shown.
        """
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        if headers.get(b"host", [""]) not in [[host] for host in self._hosts]:
            raise Turned(421, "MISDIRECTED", "this server is of this machine alone")
        if any(origin not in self._origins for origin in headers.get(b"origin", [])):
            raise Turned(403, "ORIGIN_REFUSED", "no web page may call this server")
        path = PATH.fullmatch(scope["path"])
        if path is None or scope.get("query_string"):
            raise Turned(404, "NOT_FOUND", "there is only /agents/NAME/mcp")
        kind, _, token = headers.get(b"authorization", [""])[0].partition(" ")
        if len(headers.get(b"authorization", [])) != 1 or kind.lower() != "bearer" or not token.isascii():
            raise Turned(401, "TOKEN_MISSING", "name your token: Authorization: Bearer …")
        peer, here = scope["client"], scope["server"]
        try:
            return await asyncio.to_thread(self._shown, path[1], token.strip(), peer[1], here[1])
        except SwarmError as problem:
            raise Turned(403, problem.code, problem.message) from None

    def _shown(self, name: str, token: str, port: int, server_port: int) -> serving.Client:
        return serving.bearer(self._pool, self._root, name, token, serving.connected(port, server_port))


class Turned(Exception):  # a request that is turned away
    """A request that is not let through."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self._status = status
        self._said = {"error": {"code": code, "message": message}}

    async def answer(self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
        """Say so."""
        await answers.close_with(send, self._status, self._said)
