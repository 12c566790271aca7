"""The paths that only look: whoever has a token may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from swarm.api.data import (
    agent_data,
    approval_data,
    queued_data,
    session_data,
    usage_data,
)
from swarm.http_door import models as agents_models
from swarm.http_door import shown
from swarm.http_door.project import models
from swarm.http_door.refusing import refusals

if TYPE_CHECKING:
    from swarm import AgentTask
    from swarm.http_door.project.project import Project

router = APIRouter()
AgentName = Annotated[
    str, Path(pattern=models.ADDRESS, max_length=81, description="The agent, as `name` or `name@session`.")
]
TaskId = Annotated[str, Path(pattern=agents_models.ID, max_length=64, description="The task.")]
QueueName = Annotated[str, Path(pattern=models.NAME, max_length=40, description="The queue.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="So many at most.")]
Everything = Annotated[int, Query(ge=0, le=1, description="1: also what is over.")]


def of(request: Request) -> tuple[Project, Any]:
    """Return the project, and who asks."""
    return request.app.state.project, request.state.caller


def task_data(task: AgentTask) -> dict[str, Any]:
    """Return a task of the project."""
    return {
        **shown.reply(task),
        "agent": task.agent,
        "program": task.program,
        "place": str(task.place),
        "by": task.by,
        "prompt_preview": shown.preview(task.prompts[-1]),
        "accepted_at": shown.time_of(task.created_ms),
    }


# --- the project ----------------------------------------------------------------------------------


@router.get("/status", response_model=models.ProjectStatus, responses=refusals(), tags=["project"])
async def status(request: Request) -> Any:
    """Return how the server stands, and how much goes on. Without a token the latter is null."""
    project, caller = of(request)
    return JSONResponse(project.status(caller))


@router.get("/sessions", response_model=models.Sessions, responses=refusals(401), tags=["project"])
async def sessions(request: Request) -> Any:
    """Return all sessions with their agents."""
    found = of(request)[0].snapshot().sessions
    return JSONResponse({"sessions": [session_data(one) for one in found]})


@router.get("/usage", response_model=models.Usage, responses=refusals(401, 404), tags=["project"])
async def usage(
    request: Request,
    session: Annotated[str | None, Query(pattern=models.NAME, max_length=40, description="Only this session.")] = None,
    everything: Everything = 0,
) -> Any:
    """Return tokens, cost and time."""
    report = await of(request)[0].look(lambda swarm: swarm.usage(session, everything=bool(everything)))
    return JSONResponse(usage_data(report))


# --- agents ---------------------------------------------------------------------------------------


@router.get("/agents", response_model=models.Agents, responses=refusals(401), tags=["agents"])
async def agents(request: Request) -> Any:
    """Return all agents of all sessions, each with its state."""
    return JSONResponse({"agents": [agent_data(one, session) for session, one in of(request)[0].agents()]})


@router.get("/agents/{agent}", response_model=models.AgentKnown, responses=refusals(401, 404), tags=["agents"])
async def agent(request: Request, agent: AgentName) -> Any:
    """Return one agent."""
    session, one = of(request)[0].agent(agent)
    return JSONResponse(agent_data(one, session))


@router.get("/agents/{agent}/why", response_model=models.AgentWhy, responses=refusals(401, 404), tags=["agents"])
async def why(request: Request, agent: AgentName) -> Any:
    """Look at one agent anew, and return its state with every piece of evidence."""
    name, _, session = agent.partition("@")
    found = await of(request)[0].look(lambda swarm: swarm.why(name, session or None))
    return JSONResponse(agent_data(found, found.session))


@router.get("/agents/{agent}/approvals", response_model=models.Approvals, responses=refusals(401, 404), tags=["agents"])
async def agent_approvals(request: Request, agent: AgentName) -> Any:
    """Return what an agent asks."""
    project, _ = of(request)
    session, one = project.agent(agent)
    asked = (each for each in project.snapshot().approvals if each.question.session == session)
    mine = [approval_data(each) for each in asked if each.question.agent == one.agent.name]
    return JSONResponse({"approvals": mine})


@router.get("/approvals", response_model=models.Approvals, responses=refusals(401), tags=["approvals"])
async def approvals(request: Request, everything: Everything = 0) -> Any:
    """Return the requests and questions that wait; with `everything=1` also those that are answered."""
    found = await of(request)[0].look(lambda swarm: swarm.approvals(everything=bool(everything)))
    return JSONResponse({"approvals": [approval_data(one) for one in found]})


@router.get("/messages", response_model=models.Messages, responses=refusals(401, 404), tags=["messages"])
async def messages(
    request: Request,
    inbox: Annotated[
        str, Query(pattern=models.ADDRESS, max_length=81, description="Of this agent; `user`: yours.")
    ] = "user",
    everything: Everything = 0,
    limit: Limit = 100,
) -> Any:
    """Return the unfinished messages of an inbox, most urgent first; with `everything=1` the last ones of any state."""

    def look(swarm: Any) -> dict[str, Any]:
        found = (swarm.messages.history if everything else swarm.messages.inbox)(inbox, limit)
        return {"inbox": swarm.messages.address(inbox), "messages": [one.as_dict() for one in found]}

    return JSONResponse(await of(request)[0].look(look))


# --- tasks ----------------------------------------------------------------------------------------


@router.get("/tasks", response_model=models.Tasks, responses=refusals(401), tags=["tasks"])
async def tasks(
    request: Request,
    everything: Everything = 0,
    agent: Annotated[str, Query(pattern=models.NAME, max_length=40, description="Only of this served agent.")] = "",
) -> Any:
    """Return the tasks that are not over, oldest first."""
    project, _ = of(request)
    found = await project.look(lambda swarm: swarm.tasks.list(finished=bool(everything), agent=agent))
    return JSONResponse({"tasks": [task_data(one) for one in found]})


@router.get("/tasks/{task_id}", response_model=models.ProjectTask, responses=refusals(401, 404), tags=["tasks"])
async def task(request: Request, task_id: TaskId, detail: Annotated[int, Query(ge=0, le=1)] = 0) -> Any:
    """Return a task as it is now; also a finished one."""
    found = await of(request)[0].look(lambda swarm: swarm.tasks.get(task_id))
    return JSONResponse(task_data(found) | ({"detail": str(found.state)} if detail else {}))


@router.get("/tasks/{task_id}/events", response_model=models.TaskEvents, responses=refusals(401, 404), tags=["tasks"])
async def task_events(
    request: Request, task_id: TaskId, after: Annotated[int, Query(ge=0, le=models.MOST_EVENTS)] = 0
) -> Any:
    """Return what happened to a task behind a number; numbers begin at 1."""
    found = await of(request)[0].look(lambda swarm: swarm.tasks.events(task_id, after=after))
    return JSONResponse({"task_id": task_id, "events": [shown.event(one) for one in found]})


@router.get("/tasks/{task_id}/output", response_model=models.TaskOutputs, responses=refusals(401, 404), tags=["tasks"])
async def task_output(request: Request, task_id: TaskId) -> Any:
    """Return what the program of a task wrote, raw; of long output the end."""
    found = await of(request)[0].look(lambda swarm: swarm.tasks.output(task_id))
    return JSONResponse({"task_id": task_id, "runs": shown.outputs(found)})


@router.get("/history", response_model=models.TaskHistory, responses=refusals(401), tags=["tasks"])
async def history(
    request: Request,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Any:
    """Return the finished tasks, newest first."""
    found = await of(request)[0].look(lambda swarm: swarm.tasks.history(page, limit))
    some = [shown.summary(one) for one in found.tasks]
    return JSONResponse({"tasks": some, "page": page, "limit": limit, "total": found.total})


# --- queues ---------------------------------------------------------------------------------------


@router.get("/queues", response_model=models.Queues, responses=refusals(401), tags=["queues"])
async def queues(request: Request) -> Any:
    """Return the queues, and how much is in each."""
    found = await of(request)[0].look(lambda swarm: swarm.queues())
    said = [{"queue": n, "waiting": d.waiting, "taken": d.claimed, "given_up": d.dead} for n, d in found]
    return JSONResponse({"queues": said})


@router.get("/queues/{queue}", response_model=models.QueuedTasks, responses=refusals(401, 404), tags=["queues"])
async def queue(request: Request, queue: QueueName, everything: Everything = 0, limit: Limit = 1000) -> Any:
    """Return the tasks of a queue, with state, worker and what they wait for."""
    found = await of(request)[0].look(lambda swarm: swarm.queues.get(queue).tasks(limit, settled=bool(everything)))
    return JSONResponse({"queue": queue, "tasks": [queued_data(one) for one in found]})
