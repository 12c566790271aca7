"""The paths by which a person lets a browser in, and ends the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse

from swarm.http_door import shown
from swarm.http_door.failures import Failure
from swarm.http_door.project import requests
from swarm.http_door.project.looks import of
from swarm.http_door.refusing import refusals

if TYPE_CHECKING:
    from swarm.api.project_server import Browser

router = APIRouter()
BrowserId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", max_length=16, description="The browser.")]


def _data(one: Browser) -> dict[str, Any]:
    return {"id": one.id, "name": one.name, "signed_in_at": shown.time_of(one.made_ms)}


@router.post(
    "/codes", status_code=201, response_model=requests.CodeReply, responses=refusals(401, 403), tags=["browsers"]
)
async def code(request: Request) -> Any:
    """Make a code with which one browser signs in within a minute. Only a shown person may, and a program with a grant.

    It belongs into the fragment of an address, which a browser sends nowhere.
    """
    project, caller = of(request)
    made, seconds = await project.act(caller, project.server.make_code)
    return JSONResponse({"code": made, "seconds": seconds}, 201)


@router.post(
    "/browsers", status_code=201, response_model=requests.BrowserReply, responses=refusals(403), tags=["browsers"]
)
async def sign_in(request: Request, asked: requests.BrowserRequest) -> Any:
    """Sign a browser in with a code; needs no token. What it does then counts as done by the person.

    Its token is told once.
    """
    project, caller = of(request)
    if project.throttle.refuses("codes"):
        raise Failure("rate_limited", "too many wrong codes came; wait a minute")
    try:
        made, token = await project.act(caller, lambda swarm: project.server.sign_in(swarm, asked.code, asked.name))
    except Failure:
        project.throttle.note("codes")
        raise
    return JSONResponse({**_data(made), "token": token}, 201)


@router.get("/browsers", response_model=requests.Browsers, responses=refusals(401), tags=["browsers"])
async def browsers(request: Request) -> Any:
    """Return the browsers that are signed in."""
    return JSONResponse({"browsers": [_data(one) for one in of(request)[0].server.browsers.all()]})


@router.post(
    "/browsers/{browser}/revoke",
    response_model=requests.Browsers,
    responses=refusals(401, 403, 404),
    tags=["browsers"],
)
async def revoke(request: Request, browser: BrowserId) -> Any:
    """Sign a browser out: its token counts no more, and its streams end. Only a shown person may, or with a grant."""
    project, caller = of(request)
    await project.act(caller, lambda swarm: project.server.revoke(swarm, browser))
    project.ring.wake()
    return JSONResponse({"browsers": [_data(one) for one in project.server.browsers.all()]})


@router.post(
    "/shutdown", status_code=202, response_model=requests.Ending, responses=refusals(401, 403), tags=["project"]
)
async def shutdown(request: Request) -> Any:
    """End the server. Tasks and agents go on."""
    project, caller = of(request)
    await project.act(caller, project.server.check_end)
    project.ended.set()
    return JSONResponse({"message": "Shutdown initiated; tasks go on"}, 202)
