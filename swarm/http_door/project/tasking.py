"""The paths that give work: tasks, and queues from which workers pull it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from swarm.api.data import taken_data
from swarm.http_door import models as agents_models
from swarm.http_door.keys import Key, id_for
from swarm.http_door.project import models, requests
from swarm.http_door.project.looks import QueueName, TaskId, of, task_data
from swarm.http_door.refusing import refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm import AgentTask, Queue, Swarm, TaskOutcome

router = APIRouter()
#: So long a cancel is waited for; a program gets ten seconds to end.
_CANCEL_SECONDS, _CANCEL_PAUSE = 12.0, 0.05
_TAKE_PAUSE = 0.5


# --- tasks ----------------------------------------------------------------------------------------


@router.post(
    "/tasks",
    status_code=201,
    response_model=agents_models.Accepted,
    responses=refusals(401, 403, 404, 409),
    tags=["tasks"],
)
async def submit(request: Request, asked: requests.ProjectTaskRequest, idempotency_key: Key = None) -> Any:
    """Give a task to the project. When the answer is there, no crash loses it; it starts as soon as there is room."""
    project, caller = of(request)
    how = {**asked.how(), "task_id": id_for("/tasks", idempotency_key)}
    task = await project.act(caller, lambda swarm: project.server.submit(swarm, asked.prompt, how, asked.agent or ""))
    status = "queued" if task.shown == "working" else str(task.shown)
    return JSONResponse({"task_id": task.id, "session_id": task.session_id, "status": status}, 201)


async def _change(request: Request, act: Callable[[Swarm], AgentTask]) -> AgentTask:
    project, caller = of(request)
    found: AgentTask = await project.act(caller, act)
    return found


@router.post(
    "/tasks/{task_id}/continue",
    response_model=models.ProjectTask,
    responses=refusals(401, 403, 404, 409),
    tags=["tasks"],
)
async def go_on(request: Request, task_id: TaskId, asked: agents_models.ContinueRequest) -> Any:
    """Give a held task its next prompt; its program takes up the conversation."""
    found = await _change(request, lambda swarm: swarm.tasks.continue_(task_id, asked.prompt))
    return JSONResponse(task_data(found))


@router.post(
    "/tasks/{task_id}/end", response_model=models.ProjectTask, responses=refusals(401, 403, 404, 409), tags=["tasks"]
)
async def end(request: Request, task_id: TaskId) -> Any:
    """Complete a held task."""
    return JSONResponse(task_data(await _change(request, lambda swarm: swarm.tasks.end(task_id))))


@router.post(
    "/tasks/{task_id}/cancel", response_model=models.ProjectTask, responses=refusals(401, 403, 404, 409), tags=["tasks"]
)
async def cancel(request: Request, task_id: TaskId, wait: Annotated[int, Query(ge=0, le=1)] = 1) -> Any:
    """End a task and all that its program started; with `?wait=0` the answer comes before they have ended."""
    project, _ = of(request)
    found = await _change(request, lambda swarm: swarm.tasks.cancel(task_id, wait=False))
    until = time.monotonic() + _CANCEL_SECONDS
    while wait and not found.is_over and time.monotonic() < until:
        await asyncio.sleep(_CANCEL_PAUSE)
        found = await project.look(lambda swarm: swarm.tasks.get(task_id))
    return JSONResponse(task_data(found))


# --- queues ---------------------------------------------------------------------------------------


@router.post(
    "/queues/{queue}/tasks",
    status_code=201,
    response_model=requests.Added,
    responses=refusals(401, 403, 404, 409),
    tags=["queues"],
)
async def add(request: Request, queue: QueueName, asked: requests.AddRequest) -> Any:
    """Add a task to a queue; the first one makes the queue."""
    project, caller = of(request)
    how: dict[str, Any] = {"priority": asked.priority, "after": asked.after, "ttl": asked.ttl_seconds}
    made = await project.act(
        caller, lambda swarm: swarm.queues.get(queue).add(asked.text, task_id=asked.id or "", **how)
    )
    return JSONResponse({"queue": queue, "id": made.id, "duplicate": made.duplicate}, 201)


@router.post(
    "/queues/{queue}/take", response_model=requests.TakenTasks, responses=refusals(401, 403, 404), tags=["queues"]
)
async def take(request: Request, queue: QueueName, asked: requests.TakeRequest) -> Any:
    """Take the most urgent tasks that are ready. They go back to the others when the lease is over.

    What an agent takes goes back, too, when its program ends.
    """
    project, caller = of(request)
    until = time.monotonic() + asked.wait_seconds
    how: dict[str, Any] = {"limit": asked.limit, "lease": asked.lease_seconds}
    while True:
        claim = await project.act(caller, lambda swarm: swarm.queues.get(queue).take(**how))
        if claim is not None:
            return JSONResponse({"queue": queue, "claim": claim.id, "tasks": taken_data(claim)})
        if time.monotonic() >= until or project.ended.is_set() or await request.is_disconnected():
            return JSONResponse({"queue": queue, "claim": None, "tasks": []})
        await asyncio.sleep(_TAKE_PAUSE)


async def _settle(request: Request, queue: str, act: Callable[[Queue], TaskOutcome]) -> Any:
    project, caller = of(request)
    found = await project.act(caller, lambda swarm: act(swarm.queues.get(queue)))
    return JSONResponse({"queue": queue, "ids": list(found.ids), "already": list(found.already)})


@router.post(
    "/queues/{queue}/done", response_model=requests.Settled, responses=refusals(401, 403, 404, 409), tags=["queues"]
)
async def done(request: Request, queue: QueueName, asked: requests.DoneRequest) -> Any:
    """Finish tasks that were taken; those that wait for them become ready."""
    return await _settle(request, queue, lambda one: one.done(asked.ids, asked.result))


@router.post(
    "/queues/{queue}/back", response_model=requests.Settled, responses=refusals(401, 403, 404, 409), tags=["queues"]
)
async def back(request: Request, queue: QueueName, asked: requests.BackRequest) -> Any:
    """Give tasks back for others to take, also tasks that were given up."""
    return await _settle(
        request, queue, lambda one: one.back(asked.ids, delay=asked.delay_seconds, reason=asked.reason)
    )


@router.post(
    "/queues/{queue}/fail", response_model=requests.Settled, responses=refusals(401, 403, 404, 409), tags=["queues"]
)
async def fail(request: Request, queue: QueueName, asked: requests.FailRequest) -> Any:
    """Give tasks up: their sender is told, and those that wait for them are blocked."""
    return await _settle(request, queue, lambda one: one.fail(asked.ids, asked.reason))


@router.post(
    "/queues/{queue}/extend", response_model=requests.Settled, responses=refusals(401, 403, 404, 409), tags=["queues"]
)
async def extend(request: Request, queue: QueueName, asked: requests.ExtendRequest) -> Any:
    """Keep tasks for longer, from now on."""
    return await _settle(request, queue, lambda one: one.extend(asked.ids, asked.lease_seconds))
