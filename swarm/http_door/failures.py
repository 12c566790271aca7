"""Every refusal and every failure, as callers are told of it: a status, a code, a sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from swarm import (
    IdentityRefused,
    Locked,
    NoSpace,
    NotForAgents,
    ProgramMissing,
    SandboxUnavailable,
    SwarmError,
    TaskBusy,
    TaskNotFound,
    TaskNotIdle,
    TaskOver,
    TaskTaken,
    UsageProblem,
    WaitOver,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Each code with its HTTP status; ``docs/service.md`` lists them, and a test compares.
STATUS: Mapping[str, int] = {
    "validation_error": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "agent_busy": 409,
    "task_in_progress": 409,
    "already_completed": 409,
    "not_idle": 409,
    "idempotency_conflict": 409,
    "precondition_failed": 412,
    "conflict": 409,
    "too_large": 413,
    "unsupported_media_type": 415,
    "misdirected": 421,
    "rate_limited": 429,
    "internal_error": 500,
    "sandbox_error": 500,
    "claude_error": 502,
    "not_ready": 503,
    "timeout": 504,
    "no_space": 507,
}
_AGAIN_LATER = {"rate_limited": 60, "not_ready": 1}


class Failure(Exception):  # what a caller is told
    """A request that was not done.

    Attributes:
        code: one of ``STATUS``.
        facts: further fields of the answer, such as ``current_task``.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS[code]
        self.said: dict[str, Any] = {"error": code, "message": message, "details": dict(details or {}), **facts}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that belong to it."""
        seconds = _AGAIN_LATER.get(self.code)
        found = {"retry-after": str(seconds)} if seconds else {}
        found |= {"allow": "GET, POST"} if self.code == "method_not_allowed" else {}
        return found | ({"www-authenticate": "Bearer"} if self.code == "unauthorized" else {})


def not_found(task_id: str) -> Failure:
    """Return the failure for a task that is not there."""
    return Failure("not_found", f"Task {task_id} not found")


_PLAIN = (
    (TaskTaken, "idempotency_conflict"),
    ((NotForAgents, IdentityRefused), "forbidden"),
    ((Locked, WaitOver), "timeout"),
    (NoSpace, "no_space"),
    (ProgramMissing, "claude_error"),
    (SandboxUnavailable, "sandbox_error"),
    (UsageProblem, "validation_error"),
)
#: The exit status of the command line → the code.
_BY_EXIT = {2: "validation_error", 3: "conflict", 4: "forbidden", 6: "not_found", 75: "timeout"}


def of_error(problem: SwarmError, task_id: str = "") -> Failure:
    """Return what a caller is told of an error of the library."""
    task_id = task_id or "of this id"
    if isinstance(problem, TaskNotFound):
        return not_found(task_id)
    if isinstance(problem, TaskBusy):
        busy = str(problem.facts.get("current_task", ""))
        return Failure("agent_busy", f"Agent is currently processing {busy}", current_task=busy)
    if isinstance(problem, TaskOver):
        final = str(problem.facts.get("final_state", ""))
        return Failure("already_completed", f"Task {task_id} has already completed", final_state=final)
    if isinstance(problem, TaskNotIdle):
        return Failure("not_idle", f"Task {task_id} does not wait", state=str(problem.facts.get("state", "")))
    plain = next((code for kinds, code in _PLAIN if isinstance(problem, kinds)), _BY_EXIT.get(problem.exit_code))
    if plain is not None:
        told = {"code": problem.code} | ({"hint": problem.hint} if problem.hint else {})
        return Failure(plain, problem.message, told)
    return Failure("internal_error", "swarm could not do it; the log of the server says more", {"code": problem.code})


def of_validation(problems: Iterable[Mapping[str, Any]]) -> Failure:
    """Return what a caller is told whose request does not fit its model; what was sent is not repeated."""
    found = [_words(one) for one in problems]
    return Failure("validation_error", found[0], {"problems": found[:20]})


def _words(problem: Mapping[str, Any]) -> str:
    _, *place = problem["loc"] or ("",)
    where = ".".join(re.sub(r"[^A-Za-z0-9_]", "?", str(one))[:40] for one in place)
    if problem["type"] == "missing":
        return f"{where or 'a JSON object'} is required"
    if problem["type"] in ("string_too_short", "blank"):
        return f"{where} is required"
    if problem["type"] == "extra_forbidden":
        return f"{where} is not known"
    said = str(problem["msg"]).removeprefix("Value error, ")
    return f"{where}: {said[:1].lower()}{said[1:200]}" if where else said[:200]
