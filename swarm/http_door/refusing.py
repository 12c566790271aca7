"""An application of this door, and how it refuses: in its answers, and in its OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from swarm.http_door import models
from swarm.http_door.failures import STATUS, Failure, of_validation

if TYPE_CHECKING:
    from fastapi import Request

_CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    412: "precondition_failed",
    409: "agent_busy, task_in_progress, already_completed, not_idle, idempotency_conflict or conflict",
}


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of a path for the OpenAPI document; every path can also answer with the others."""
    known: dict[int | str, dict[str, Any]] = {
        code: {"model": models.Failed, "description": _CODES[code]} for code in codes
    }
    return {**known, "default": {"model": models.Failed, "description": "Every other refusal or failure."}}


def application(title: str, about: str) -> FastAPI:
    """Return an application without paths; every refusal and failure of it is one of the API's."""
    app = FastAPI(
        title=title,
        version="1.0",
        description=about,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        openapi_url="/openapi.json",
    )
    app.add_exception_handler(Failure, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unknown)
    return app


async def _failed(_request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, Failure)  # noqa: S101  # it is registered for it
    return JSONResponse(problem.said, problem.status, problem.headers)


async def _invalid(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)  # noqa: S101  # it is registered for it
    return await _failed(request, of_validation(problem.errors()))


async def _unknown(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, HTTPException)  # noqa: S101  # it is registered for it
    code = next((code for code, status in STATUS.items() if status == problem.status_code), "validation_error")
    return await _failed(request, Failure(code, "there is no such path" if code == "not_found" else "not done so"))
