"""The server of a repository: one process for all doors of its agents, by its unix socket and by loopback HTTP.

    door of an agent ── .swarm/server/socket ──┐
    HTTP, token, /agents/NAME/mcp ─ 127.0.0.1 ─┴─ this process ── the library, as that agent

It holds nothing that is not on the disk: killed at any moment, the next one takes over, and without one each door
serves by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from swarm.listening import places
from swarm.mcp_door import loopback
from swarm.mcp_door.connections import Doors
from swarm.mcp_door.server import build

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from swarm.api.serving import Place

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(place: Place, port: int, ready: Callable[[int], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP.

    Args:
        port: on 127.0.0.1; 0: any that is free.
        ready: called with the port when agents can call.

    Raises:
        ServerRuns: another process serves this repository.
        EnvironmentProblem: the port is taken.
        OSError: the socket cannot be made.
    """
    with place:
        folder, name = place.socket
        with (
            contextlib.closing(places.loopback(port)) as http,
            contextlib.closing(places.private(str(folder), name)) as local,
        ):
            asyncio.run(_serve(place, local, http, ready))


async def _serve(place: Place, local: socket.socket, http: socket.socket, ready: Callable[[int], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    port = http.getsockname()[1]
    server = build()
    doors = Doors(server, place.root)
    async with doors.listening(local), loopback.serving_http(server, place.root, http, doors.pool):
        place.write(port)
        ready(port)
        await stop.wait()
