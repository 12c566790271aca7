"""The process of one served agent: it listens at once, checks its program, and ends by request or signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from swarm import SwarmError
from swarm.listening import places

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable

    from swarm.api.agent_server import AgentServer

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KEEP_ALIVE = 10


def serve(server: AgentServer, ready: Callable[[str], None]) -> None:
    """Serve until the agent is asked to end.

    Args:
        ready: called with the agent's address when it takes tasks.

    Raises:
        ComponentRuns: another process serves this agent.
        EnvironmentProblem: the port is taken.
        UsageProblem: other machines would reach it, and there is no certificate.
        SwarmError: its program cannot do tasks.
    """
    with server:
        folder, name = server.socket
        says = server.agent.says
        # Whoever connects from here on waits for its answer until all is loaded.
        with (
            contextlib.closing(places.address(says.bind, says.port, secured=server.is_secured)) as http,
            contextlib.closing(places.private(str(folder), name)) as local,
        ):
            server.certify(http.getsockname()[0])
            server.write(http.getsockname())
            asyncio.run(_serve(server, http, local, ready))


async def _serve(server: AgentServer, http: socket.socket, local: socket.socket, ready: Callable[[str], None]) -> None:
    from swarm.http_door.agent import Agent
    from swarm.http_door.app import build
    from swarm.http_door.guard import Guard
    from swarm.listening import timed

    host, port = http.getsockname()
    agent = Agent(server, port)
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, agent.asked_to_end)
    guard = Guard(build(agent), server, port)
    certificate = server.certificate
    secured = (http, certificate.context) if certificate is not None else None
    sockets = [local] if secured else [http, local]
    async with timed.serving(guard, sockets, secured=secured, keep_alive=_KEEP_ALIVE):
        beginning = asyncio.create_task(agent.begin())
        ending = asyncio.create_task(agent.ended.wait())
        looking: asyncio.Task[None] | None = None
        try:
            await asyncio.wait({beginning, ending}, return_when=asyncio.FIRST_COMPLETED)
            if beginning.done():
                await beginning
                ready(f"http{'s' if secured else ''}://{host}:{port}")
                looking = asyncio.create_task(agent.look_on())
                async with _announced(server):
                    await ending
        finally:
            for one in (beginning, ending, looking):
                if one is not None:
                    one.cancel()
            agent.close()


@contextlib.asynccontextmanager
async def _announced(server: AgentServer) -> AsyncIterator[None]:
    """Announce the agent on the network, if that is wished; without a network it is served all the same."""
    made = server.announced()
    there = False
    try:
        await asyncio.to_thread(made.__enter__)
        there = True
    except (SwarmError, OSError) as problem:
        server.log.say("warning", f"cannot announce the agent: {problem}")
    try:
        yield
    finally:
        if there:
            await asyncio.to_thread(made.__exit__, None, None, None)
