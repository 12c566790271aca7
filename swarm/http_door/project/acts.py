"""The paths that change something: agents, messages and approvals; each is done as whoever asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Path, Request
from fastapi.responses import JSONResponse

from swarm.api.data import approval_data
from swarm.http_door.project import models, requests
from swarm.http_door.project.looks import AgentName, of
from swarm.http_door.refusing import refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swarm import Sent

router = APIRouter()
ApprovalId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", max_length=64, description="Its id.")]


def _named(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name}@{session}" for session, name in pairs]


# --- agents ---------------------------------------------------------------------------------------


@router.post(
    "/agents/{agent}/stop", response_model=requests.Stopped, responses=refusals(401, 403, 404, 409), tags=["agents"]
)
async def stop(request: Request, agent: AgentName) -> Any:
    """End the program of an agent, and all that it started; its worktree stays."""
    project, caller = of(request)
    name, _, session = agent.partition("@")
    report = await project.act(caller, lambda swarm: swarm.stop([session] if session else [], agent=name))
    return JSONResponse({"stopped": _named(report.stopped), "survivors": list(report.survivors)})


@router.post(
    "/agents/{agent}/resume", response_model=requests.Resumed, responses=refusals(401, 403, 404, 409), tags=["agents"]
)
async def resume(request: Request, agent: AgentName) -> Any:
    """Start a stopped agent again: same worktree, and where its program can, same conversation."""
    project, caller = of(request)
    name, _, session = agent.partition("@")
    report = await project.act(caller, lambda swarm: swarm.resume([session] if session else [], agent=name))
    return JSONResponse(
        {
            "started": _named(report.started),
            "running": _named(report.running),
            "done": _named(report.done),
            "skipped": [{"name": one.name, "reason": one.reason, "code": one.code} for one in report.skipped],
        }
    )


# --- messages -------------------------------------------------------------------------------------


@router.post(
    "/agents/{agent}/messages",
    status_code=201,
    response_model=requests.SentReply,
    responses=refusals(401, 403, 404, 409),
    tags=["messages"],
)
async def tell(request: Request, agent: AgentName, asked: requests.MessageRequest) -> Any:
    """Send a message to an agent. When the answer is there, it is in the agent's inbox."""
    return await _send(request, [agent], asked)


@router.post(
    "/messages",
    status_code=201,
    response_model=requests.SentReply,
    responses=refusals(401, 403, 404, 409),
    tags=["messages"],
)
async def send(request: Request, asked: requests.SendRequest) -> Any:
    """Send a message to several. When the answer is there, it is in every recipient's inbox."""
    return await _send(request, asked.to, asked)


async def _send(request: Request, to: Sequence[str], asked: requests.MessageRequest) -> Any:
    project, caller = of(request)
    options: dict[str, Any] = {"subject": asked.subject, "priority": asked.priority}
    if asked.reply_to is not None:
        options["reply_to"] = asked.reply_to
    sent: tuple[Sent, ...] = await project.act(caller, lambda swarm: swarm.send(to, asked.body, **options))
    return JSONResponse({"sent": [{"id": one.id, "to": one.to, "note": one.note} for one in sent]}, 201)


# --- approvals ------------------------------------------------------------------------------------


@router.post(
    "/approvals/{approval_id}/allow",
    response_model=models.ApprovalKnown,
    responses=refusals(401, 403, 404, 409),
    tags=["approvals"],
)
async def allow(
    request: Request,
    approval_id: ApprovalId,
    asked: Annotated[requests.AllowRequest | None, Body()] = None,
) -> Any:
    """Allow what an agent asks, or answer its questions. Only a shown person may, and a program with a grant."""
    project, caller = of(request)
    how = asked or requests.AllowRequest()
    answer = await project.act(
        caller,
        lambda swarm: swarm.approvals.approve(
            approval_id, reason=how.reason, always=how.always, rule=how.rule, answers=how.answers
        ),
    )
    return JSONResponse(approval_data(answer))


@router.post(
    "/approvals/{approval_id}/deny",
    response_model=models.ApprovalKnown,
    responses=refusals(401, 403, 404, 409),
    tags=["approvals"],
)
async def deny(
    request: Request,
    approval_id: ApprovalId,
    asked: Annotated[requests.AnswerRequest | None, Body()] = None,
) -> Any:
    """Deny what an agent asks; it gets the reason. Only a shown person may, and a program with a grant."""
    project, caller = of(request)
    how = asked or requests.AnswerRequest()
    answer = await project.act(
        caller,
        lambda swarm: swarm.approvals.deny(approval_id, reason=how.reason, always=how.always, rule=how.rule),
    )
    return JSONResponse(approval_data(answer))
