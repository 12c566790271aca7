"""The MCP endpoint of each agent by HTTP on this machine: ``/agents/NAME/mcp``, with the agent's token.

Three things have to fit: the token is that of the named agent's last launch; the process at the other end belongs to
that agent, where the machine can show it (Linux); and the request comes from no web page: its Host is this machine's,
and its Origin, if it has one, is the server's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from uvicorn.protocols.http.h11_impl import H11Protocol

from swarm import SwarmError
from swarm.api import serving
from swarm.mcp_door.server import CLIENT

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
    from pathlib import Path

    from mcp.server.lowlevel.server import Server

_PATH = re.compile(r"/agents/([A-Za-z0-9][A-Za-z0-9_@-]{0,99})/mcp")
#: So long a peer may take for the head of a request, and for its body.
_HEAD_SECONDS, _BODY_SECONDS = 10.0, 30.0
_GRACE, _KEEP_ALIVE = 2, 30
_MOST_CONNECTIONS = 500


@contextlib.asynccontextmanager
async def serving_http(
    server: Server[Any], root: Path, listener: socket.socket, pool: serving.Pool
) -> AsyncIterator[None]:
    """Take requests; at the end they end."""
    port = listener.getsockname()[1]
    hosts = [f"127.0.0.1:{port}", f"localhost:{port}"]
    origins = [f"http://{host}" for host in hosts]
    manager = StreamableHTTPSessionManager(
        server,
        stateless=True,  # a client that lived longer than the server goes on with the next one
        security_settings=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    guard = Guard(manager, root, pool, hosts, origins)
    config = uvicorn.Config(
        guard,
        http=Timed,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
    )
    http = _Server(config)
    running = asyncio.create_task(http.serve(sockets=[listener]))
    try:
        async with manager.run():
            yield
            http.should_exit = True
    finally:
        http.should_exit = True
        await running


class _Server(uvicorn.Server):
    """uvicorn, whose signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave all signals alone."""
        yield


class Timed(H11Protocol):
    """HTTP with a time limit for the head of a request: uvicorn has none."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head; a body has a limit of its own."""
        before: Any = self.cycle
        if self._limit is None and (before is None or before.response_complete):
            self._await_head()
        super().data_received(data)
        if self.cycle is not before:
            self._heard()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._heard()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._limit = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _heard(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


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
        path = _PATH.fullmatch(scope["path"])
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
        self._body = json.dumps({"error": {"code": code, "message": message}}).encode()

    async def answer(self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
        """Say so; the connection ends, since the body was not read."""
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        headers.append((b"content-length", str(len(self._body)).encode()))
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})
