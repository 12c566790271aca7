"""The server of a repository: one process for all doors of its agents, and for programs and dashboards.

    door of an agent ── .swarm/server/socket ──────────────────────┐
    HTTP of the user's programs ── .swarm/server/http ─────────────┤
    HTTP, token ── 127.0.0.1 ──┬─ /agents/NAME/mcp: an agent's ────┼─ this process ── the library, as whoever calls
                               └─ all else: the project ───────────┘

It holds nothing that is not on the disk: killed at any moment, the next one takes over; without one each door serves
by itself, and tasks go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Any

from swarm.listening import answers, places
from swarm.mcp_door.lazily import PATH, Lazily

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from swarm.api.serving import Place
    from swarm.http_door.project.serve import Served

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(place: Place, port: int, ready: Callable[[int], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP, or until a request asks for the end.

    Args:
        port: on 127.0.0.1; 0: any that is free.
        ready: called with the port when agents and programs can call.

    Raises:
        ServerRuns: another process serves this repository.
        EnvironmentProblem: the port is taken.
        OSError: a socket cannot be made.
    """
    with place, contextlib.ExitStack() as sockets:
        folder, doors, http = place.sockets
        # Whoever connects from here on waits for its answer until all is loaded.
        made = [
            sockets.enter_context(contextlib.closing(places.loopback(port))),
            sockets.enter_context(contextlib.closing(places.private(str(folder), http))),
            sockets.enter_context(contextlib.closing(places.private(str(folder), doors))),
        ]
        asyncio.run(_serve(place, made, ready))


async def _serve(place: Place, sockets: Sequence[socket.socket], ready: Callable[[int], None]) -> None:
    from swarm.listening import timed

    http, private, doors = sockets
    port = http.getsockname()[1]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    project = _project(place, port, stop)
    mcp = Lazily(place.root, port)
    front = Front(mcp if place.has_mcp else None, project)
    async with mcp.listening(doors), timed.serving(front, [http, private], most=_MOST_CONNECTIONS):
        place.write(port)
        async with project.following() if project is not None else contextlib.nullcontext():
            ready(port)
            await stop.wait()


#: Watchers of events hold a connection each.
_MOST_CONNECTIONS = 1200


def _project(place: Place, port: int, stop: asyncio.Event) -> Served | None:
    """Return the project for programs; None where its libraries are not installed."""
    if not place.has_project:
        return None
    from swarm.http_door.project.serve import Served

    return Served(place, port, stop)


class Front:
    """Hands each request to the part of the server that it is for."""

    def __init__(self, mcp: Any, project: Any) -> None:
        self._mcp = mcp
        self._project = project

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        is_agents = PATH.fullmatch(scope["path"]) is not None and scope["client"] is not None
        part = self._mcp if is_agents or self._project is None else self._project
        if part is None:
            said = {"error": "not_found", "message": "the library `mcp` is not installed here", "details": {}}
            await answers.close_with(send, 404, said)
        else:
            await part(scope, receive, send)
