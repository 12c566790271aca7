"""uvicorn for this machine: its signals are ours, and it waits for nobody for ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncIterator, Iterator, Sequence

#: So long a peer may take for the head of a request, and for taking what it is sent.
HEAD_SECONDS = 10.0
_GRACE, _KEEP_ALIVE = 2, 30
_MOST_CONNECTIONS = 500


@contextlib.asynccontextmanager
async def serving(
    app: Any,
    sockets: Sequence[socket.socket],
    *,
    secured: tuple[socket.socket, ssl.SSLContext] | None = None,
    keep_alive: int = _KEEP_ALIVE,
    grace: int = _GRACE,
    most: int = _MOST_CONNECTIONS,
) -> AsyncIterator[None]:
    """Take requests; at the end they end.

    Args:
        secured: another socket, at which TLS is spoken with this context.
        keep_alive: seconds for which a connection without a request stays.
        grace: seconds that answers may take at the end.
        most: how many connections there may be at once.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)  # what peers send is not ours to print
    config = uvicorn.Config(
        app,
        http=Timed,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=most,
        timeout_keep_alive=keep_alive,
        timeout_graceful_shutdown=grace,
    )
    server = _Server(config)
    server.secured = secured
    running = asyncio.create_task(server.serve(sockets=list(sockets)))
    try:
        yield
    finally:
        server.should_exit = True
        await running


class _Server(uvicorn.Server):
    """uvicorn, whose signals are ours, and which speaks TLS at one of its sockets."""

    secured: tuple[socket.socket, ssl.SSLContext] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; whoever does not begin to speak TLS in time is let go."""
        await super().startup(sockets)
        if self.secured is None:
            return
        listening, context = self.secured

        def protocol() -> Timed:
            return Timed(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        made = await asyncio.get_running_loop().create_server(
            protocol, sock=listening, ssl=context, ssl_handshake_timeout=HEAD_SECONDS
        )
        self.servers.append(made)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave all signals alone."""
        yield


class Timed(H11Protocol):
    """HTTP with limits for slow peers: uvicorn has none.

    A whole head has to be there in time, and what is sent has to be taken in time.  Of those that have not sent a
    whole head only so many may wait: the one that waits longest makes room.
    """

    _MOST_SILENT: ClassVar[int] = _MOST_CONNECTIONS // 2
    _silent: ClassVar[dict[Timed, None]] = {}
    _limit: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, "connection": transport}
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head; a body has a limit of its own."""
        before: Any = self.cycle
        if self._limit is None and (before is None or before.response_complete):
            self._await_head()
        super().data_received(data)
        if self.cycle is not before:
            self._heard()

    def pause_writing(self) -> None:
        """Wait until the peer takes what it is sent."""
        super().pause_writing()
        self._stuck = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Wait no longer: the peer took it."""
        super().resume_writing()
        self._taken()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer: the peer is gone."""
        self._heard()
        self._taken()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._limit = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
        self._silent[self] = None
        if len(self._silent) > self._MOST_SILENT:
            oldest = next(iter(self._silent))
            del self._silent[oldest]
            oldest.transport.abort()

    def _heard(self) -> None:
        self._silent.pop(self, None)
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _taken(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
