"""The project as a part of a server: its guard in front, and what goes on behind it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from swarm.api.project_server import ProjectServer
from swarm.http_door.guard import Guard
from swarm.http_door.project.app import build, rules
from swarm.http_door.project.project import Project

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from swarm.api.serving import Place


class Served:
    """The served project.

    Args:
        port: of the server on 127.0.0.1.
        stop: is set when a request asks for the end.
    """

    def __init__(self, place: Place, port: int, stop: asyncio.Event) -> None:
        server = ProjectServer(place, dict(os.environ))
        self._project = Project(server, port, stop)
        self._guard = Guard(build(self._project), server, port, rules(server.browsers.id_of))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the project, and find again what goes on in it.

        Raises:
            SwarmError: that cannot be done.
        """
        looking: asyncio.Task[None] | None = None
        try:
            await self._project.begin()
            looking = asyncio.create_task(self._project.look_on())
            yield
        finally:
            if looking is not None:
                looking.cancel()
            self._project.close()
