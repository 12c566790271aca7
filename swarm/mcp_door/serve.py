"""The server of a repository: one process for all doors of its agents, by its unix socket and by loopback HTTP.

    door of an agent ── .swarm/server/socket ──┐
    HTTP, token, /agents/NAME/mcp ─ 127.0.0.1 ─┴─ this process ── the library, as that agent

It holds nothing that is not on the disk: killed at any moment, the next one takes over, and without one each door
serves by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from typing import TYPE_CHECKING

from swarm import EnvironmentProblem
from swarm.mcp_door import loopback
from swarm.mcp_door.connections import Doors
from swarm.mcp_door.server import build

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.api.serving import Place

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WAITING = 128


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
        with contextlib.closing(_loopback(port)) as http, contextlib.closing(_local(str(folder), name)) as local:
            asyncio.run(_serve(place, local, http, ready))


def _loopback(port: int) -> socket.socket:
    """Listen on this machine alone; named as TCP, since asyncio looks at that before it sends small pieces at once."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.listen(_WAITING)
    except OSError as problem:
        made.close()
        raise EnvironmentProblem(
            f"cannot listen on 127.0.0.1:{port}: {problem.strerror}", hint="choose another one, or leave out --port"
        ) from problem
    return made


def _local(folder: str, name: str) -> socket.socket:
    """Listen on the socket of the repository; what a killed server left there is replaced."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    mask = os.umask(0o177)
    try:
        os.chdir(folder)  # the kernel takes no long path
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        made.bind(name)
        made.listen(_WAITING)
    except OSError:
        made.close()
        raise
    finally:
        os.umask(mask)
        os.fchdir(here)
        os.close(here)
    return made


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
