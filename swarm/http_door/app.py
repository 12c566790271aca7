"""The paths of a served agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Body, FastAPI, Header, Path, Query, Request
from fastapi.responses import JSONResponse

from swarm.http_door import models, refusing, shown
from swarm.http_door.failures import not_found
from swarm.http_door.keys import Key, id_for
from swarm.http_door.refusing import refusals

if TYPE_CHECKING:
    from swarm.http_door.agent import Agent

_ABOUT = """\
The tasks of one agent. Every path but `GET /status` wants the token of the file `credentials/api-token` in the swarm
directory: `Authorization: Bearer …`. Bodies are JSON, of 1 MiB at most. Every refusal is `{error, message, details}`.
"""
Id = Annotated[str, Path(pattern=models.ID, max_length=64, description="The task.")]


def build(agent: Agent | None = None) -> FastAPI:
    """Return the application.

    Args:
        agent: None: only for its document.
    """
    app = refusing.application("swarm agent", _ABOUT)
    app.state.agent = agent
    _add_agent(app)
    _add_tasks(app)
    _add_turns(app)
    _add_history(app)
    _add_reports(app)
    _add_config(app)
    return app


def _of(request: Request) -> tuple[Agent, Any]:
    """Return the agent, and who asks."""
    return request.app.state.agent, request.state.caller


def _add_agent(app: FastAPI) -> None:
    @app.get("/status", response_model=models.Status, responses=refusals(), tags=["agent"])
    async def status(request: Request) -> Any:
        """Return how the agent stands, and what happened to it. Needs no token."""
        agent, caller = _of(request)
        return JSONResponse(agent.status(caller))

    @app.post(
        "/shutdown",
        status_code=202,
        response_model=models.ShuttingDown,
        responses=refusals(401, 403, 409),
        tags=["agent"],
    )
    async def shutdown(request: Request, asked: Annotated[models.ShutdownRequest | None, Body()] = None) -> Any:
        """End the agent. A running task is a reason to refuse, unless `drain` waits for it or `force` cancels it."""
        agent, caller = _of(request)
        how = asked or models.ShutdownRequest()
        await agent.shut_down(caller, how)
        said = {"message": "Shutdown initiated", "drain_timeout": 0 if how.force else how.timeout_seconds}
        return JSONResponse(said, 202)


def _add_tasks(app: FastAPI) -> None:
    @app.post(
        "/task", status_code=201, response_model=models.Accepted, responses=refusals(401, 403, 409), tags=["tasks"]
    )
    async def submit(request: Request, asked: models.TaskRequest, idempotency_key: Key = None) -> Any:
        """Give the agent a task. When the answer is there, no crash loses the task."""
        agent, caller = _of(request)
        task = await agent.submit(caller, asked, id_for(agent.server.agent.name, idempotency_key))
        status = "queued" if task.shown == "working" else str(task.shown)
        return JSONResponse({"task_id": task.id, "session_id": task.session_id, "status": status}, 201)

    @app.get("/task/{task_id}", response_model=models.TaskReply, responses=refusals(401, 404), tags=["tasks"])
    async def task(request: Request, task_id: Id, detail: Annotated[int, Query(ge=0, le=1)] = 0) -> Any:
        """Return a task as it is now; also a finished one."""
        agent, _ = _of(request)
        found = await agent.task(task_id)
        said = shown.reply(found, await agent.do(lambda: agent.server.reported(task_id)))
        return JSONResponse(said | ({"detail": str(found.state)} if detail else {}))

    @app.get("/task/{task_id}/debug", response_model=models.Debug, responses=refusals(401, 404), tags=["tasks"])
    async def debug(request: Request, task_id: Id) -> Any:
        """Return what the program wrote, raw; of long output the end."""
        runs = await _outputs(_of(request)[0], task_id)
        last = runs[-1] if runs else {"stdout": "", "stderr": ""}
        return JSONResponse({"task_id": task_id, "stdout": last["stdout"], "stderr": last["stderr"], "runs": runs})


def _add_turns(app: FastAPI) -> None:
    @app.post(
        "/task/{task_id}/cancel", response_model=models.Changed, responses=refusals(401, 403, 404, 409), tags=["tasks"]
    )
    async def cancel(request: Request, task_id: Id, wait: Annotated[int, Query(ge=0, le=1)] = 1) -> Any:
        """Cancel a task and all that its program started; with `?wait=0` the answer comes before they have ended."""
        agent, caller = _of(request)
        found = await agent.cancel(caller, task_id, wait=bool(wait))
        said = {"task_id": task_id, "state": str(found.shown), "message": "Task cancellation initiated"}
        return JSONResponse(said | {"output": found.output or None})

    @app.post(
        "/task/{task_id}/continue",
        response_model=models.Changed,
        responses=refusals(401, 403, 404, 409),
        tags=["tasks"],
    )
    async def go_on(request: Request, task_id: Id, asked: models.ContinueRequest) -> Any:
        """Give a held task its next prompt; its program takes up the conversation."""
        agent, caller = _of(request)
        found = await agent.go_on(caller, task_id, asked.prompt)
        return JSONResponse({"task_id": task_id, "state": "working" if not found.is_over else str(found.shown)})

    @app.post(
        "/task/{task_id}/end", response_model=models.Changed, responses=refusals(401, 403, 404, 409), tags=["tasks"]
    )
    async def end(request: Request, task_id: Id) -> Any:
        """Complete a held task."""
        agent, caller = _of(request)
        found = await agent.end(caller, task_id)
        return JSONResponse({"task_id": task_id, "state": str(found.shown), "output": found.output or None})


def _add_history(app: FastAPI) -> None:
    @app.get("/history", response_model=models.Page, responses=refusals(401), tags=["history"])
    async def history(
        request: Request,
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> Any:
        """Return the finished tasks of this agent, newest first."""
        agent, _ = _of(request)
        found = await agent.do(agent.server.finished)
        some = [shown.summary(one) for one in found[(page - 1) * limit : page * limit]]
        return JSONResponse({"tasks": some, "page": page, "limit": limit, "total": len(found)})

    @app.get("/history/{task_id}", response_model=models.Details, responses=refusals(401, 404), tags=["history"])
    async def details(request: Request, task_id: Id) -> Any:
        """Return a finished task with all that is known of it."""
        agent, _ = _of(request)
        found = await agent.task(task_id)
        if not found.is_over:
            raise not_found(task_id)
        events = await agent.do(lambda: agent.server.tasks.events(task_id), task_id)
        return JSONResponse(
            {
                **shown.reply(found, reported := await agent.do(lambda: agent.server.reported(task_id))),
                "reported": reported._asdict() if reported is not None else None,
                "prompts": list(found.prompts),
                "events": [shown.event(one) for one in events],
                "logs": await _outputs(agent, task_id),
            }
        )


def _add_config(app: FastAPI) -> None:
    @app.get("/config", response_model=models.Config, responses=refusals(401), tags=["agent"])
    async def config(request: Request) -> Any:
        """Return the configuration; its `ETag` names it as it is now."""
        agent, _ = _of(request)
        return JSONResponse(agent.config(), headers={"ETag": agent.config_tag()})

    @app.put("/config", response_model=models.Config, responses=refusals(401, 403, 412), tags=["agent"])
    async def configure(
        request: Request,
        asked: models.ConfigChange,
        if_match: Annotated[str | None, Header(description="The ETag of what you change.", max_length=100)] = None,
    ) -> Any:
        """Change the configuration for tasks to come, until the agent is started again; its file stays as it is."""
        agent, caller = _of(request)
        await agent.configure(caller, asked, if_match)
        return JSONResponse(agent.config(), headers={"ETag": agent.config_tag()})


def _add_reports(app: FastAPI) -> None:
    @app.post("/otlp/v1/{kind}", response_model=models.Taken, responses=refusals(401), tags=["reports"])
    async def report(
        request: Request, kind: Literal["logs", "metrics", "traces"], body: Annotated[dict[str, Any], Body()]
    ) -> Any:
        """Take what the program of a task reports of itself, as OTLP in JSON. It has a token of its own."""
        agent, _ = _of(request)
        await agent.do(lambda: agent.server.report(kind, body))
        return JSONResponse({"partialSuccess": {}})


async def _outputs(agent: Agent, task_id: str) -> list[dict[str, str]]:
    await agent.task(task_id)
    found = await agent.do(lambda: agent.server.tasks.output(task_id), task_id)
    return shown.outputs(found)


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return build().openapi()
