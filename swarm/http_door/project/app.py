"""The paths of a served project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from swarm.http_door import refusing
from swarm.http_door.project import acts, following, looks, signing, tasking

if TYPE_CHECKING:
    from swarm.http_door.project.project import Project

_ABOUT = """\
A project: its agents, tasks, messages, approvals and events. Every path but `GET /status` wants the token of the file
`credentials/api-token` in the swarm directory: `Authorization: Bearer …`. Bodies are JSON, of 1 MiB at most. Every
refusal is `{error, message, details}`. Whoever asks is known by its process: an agent may do here what it may do with
the command line, and nothing else. Requests of agents are answered by a person at a terminal, or by a program with a
grant, which shows it in the header `Swarm-Grant`.
"""


def build(project: Project | None = None) -> FastAPI:
    """Return the application.

    Args:
        project: None: only for its document.
    """
    app = FastAPI(
        title="swarm project",
        version="1.0",
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        openapi_url="/openapi.json",
    )
    app.state.project = project
    refusing.add_to(app)
    for one in (looks, following, acts, tasking, signing):
        app.include_router(one.router)
    return app


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return build().openapi()
