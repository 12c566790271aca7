"""The paths of a served project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.http_door import refusing
from swarm.http_door.project import acts, following, looks, signing, tasking

if TYPE_CHECKING:
    from fastapi import FastAPI

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
    app = refusing.application("swarm project", _ABOUT)
    app.state.project = project
    for one in (looks, following, acts, tasking, signing):
        app.include_router(one.router)
    return app


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return build().openapi()
