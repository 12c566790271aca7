"""The path of events: a page, or a stream."""

from __future__ import annotations

import re
import resource
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse

from swarm.api.data import event_data
from swarm.http_door.failures import Failure
from swarm.http_door.project import models
from swarm.http_door.project.looks import of
from swarm.http_door.project.stream import Watch
from swarm.http_door.refusing import refusals

router = APIRouter()
_NUMBER = re.compile(r"[0-9]{1,15}")
_STREAM = "text/event-stream"


def _most() -> int:
    """Return how many may follow: each holds a descriptor, and half of them are for the rest."""
    return max(64, min(1000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))


@router.get(
    "/events",
    response_model=models.Events,
    responses={200: {"content": {_STREAM: {"schema": {"type": "string"}}}}, **refusals(401)},
    tags=["events"],
)
async def events(
    request: Request,
    after: Annotated[
        int | None, Query(ge=0, le=models.MOST_EVENTS, description="Events behind this number; default: see above.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="So many at most; not of a stream.")] = 100,
    last_event_id: Annotated[
        str | None, Header(pattern=r"^[0-9]{1,15}$", description="Of a stream: goes on behind this number.")
    ] = None,
) -> Any:
    """Return the events of the project behind a number, oldest first: a page, which begins with the oldest.

    With `Accept: text/event-stream` it is a stream, which goes on with each new event, and without a number begins with
    the next. Each event has its number as `id`; whoever sends it as `Last-Event-ID` goes on behind it. What is not in
    the log is an event of the kind `gap`. `event: lost` ends the stream of a watcher that is too slow: it comes back
    with the number that it has, and misses nothing.
    """
    project, caller = of(request)
    if _STREAM not in request.headers.get("accept", ""):
        page = await project.ring.page(after or 0, limit)
        return JSONResponse({"events": [event_data(one) for one in page.events], "last": page.last, "more": page.more})
    if last_event_id is not None:
        if _NUMBER.fullmatch(last_event_id) is None:
            raise Failure("validation_error", "Last-Event-ID is the number of an event")
        after = int(last_event_id)
    if project.ring.watchers >= _most():
        raise Failure("rate_limited", "too many follow the events already")
    return Watch(project.ring, after, lambda: project.is_let(caller))
