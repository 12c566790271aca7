"""The project as a part of a server: its guard in front, and what goes on behind it.

Its paths are loaded with the first request that the guard lets through: a server for agents alone does without them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from typing import TYPE_CHECKING, Any

from swarm.api.project_server import ProjectServer
from swarm.http_door.guard import NUMBER, Guard, Rules
from swarm.http_door.project.project import Project

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from fastapi import FastAPI

    from swarm.api.serving import Place


_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@-]{0,99}")
_PARAMETERS = {
    "after": re.compile(r"[0-9]{1,15}"),
    **dict.fromkeys(("limit", "page", "detail", "wait", "everything"), NUMBER),
    **dict.fromkeys(("session", "agent", "inbox"), _WORD),
}
_OPEN = frozenset({("GET", "/status"), ("POST", "/browsers")})


def rules(browser_of: Callable[[bytes], str]) -> Rules:
    """Return what the guard lets through.

    Args:
        browser_of: the id of the browser of which a token is; empty: of none.
    """
    return Rules(_PARAMETERS, open=_OPEN, browser_of=browser_of)


class Served:
    """The served project.

    Args:
        port: of the server on 127.0.0.1.
        stop: is set when a request asks for the end.
    """

    def __init__(self, place: Place, port: int, stop: asyncio.Event) -> None:
        server = ProjectServer(place, dict(os.environ))
        self._project = Project(server, port, stop)
        self._guard = Guard(self._answer, server, port, rules(server.browsers.id_of))
        self._app: FastAPI | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request that the guard has let through."""
        app = self._app or await self._loaded()
        await app(scope, receive, send)

    async def _loaded(self) -> FastAPI:
        async with self._loading:
            if self._app is None:
                self._app = await asyncio.to_thread(_build, self._project)
            return self._app

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


def _build(project: Project) -> FastAPI:
    from swarm.http_door.project.app import build

    return build(project)
