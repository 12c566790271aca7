"""Tasks as JSON, with the fields and in the words of the API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from swarm.api.agent_server import timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import AgentTask, TaskEvent, TaskOutput
    from swarm.api.agent_server import Reported

_PREVIEW = 50
#: The API calls what a program or its model reports by the name of the first one.
_TYPES = {"program_error": "claude_error", "not_started": "claude_error"}


def preview(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text[:1000]).split())
    return line if len(line) <= _PREVIEW else f"{line[:_PREVIEW]}..."


def current(task: AgentTask) -> dict[str, Any]:
    """Return the agent's task as ``/status`` shows it."""
    return {"id": task.id, "started_at": time_of(task.started_ms), "prompt_preview": preview(task.prompts[-1])}


def reply(task: AgentTask, reported: Reported | None = None) -> dict[str, Any]:
    """Return a task.

    Args:
        reported: what its program reported: its tokens, where it did not live to tell them at its end.
    """
    over = task.is_over
    ends = over or task.state == "idle"
    found = {
        "task_id": task.id,
        "state": str(task.shown),
        "exit_code": task.exit_code if ends else None,
        **_times(task),
        "output": (task.output or None) if ends else None,
        "session_id": task.session_id,
        "token_usage": (_usage(task) or _reported(reported)) if ends else None,
    }
    if task.failure is not None and task.state == "failed":
        kind = str(task.failure.type)
        found["error"] = {"type": _TYPES.get(kind, kind), "message": task.failure.message}
    return found


def summary(task: AgentTask) -> dict[str, Any]:
    """Return a finished task as the history lists it."""
    return {
        "task_id": task.id,
        "state": str(task.shown),
        "session_id": task.session_id,
        "exit_code": task.exit_code,
        **_times(task),
        "prompt_preview": preview(task.prompts[0]),
        "token_usage": _usage(task),
    }


def outputs(found: Sequence[TaskOutput]) -> list[dict[str, str]]:
    """Return what the program wrote in each run."""
    return [
        {
            "run": one.run.operation,
            "stdout": one.stdout.decode("utf-8", "replace"),
            "stderr": one.stderr.decode("utf-8", "replace"),
        }
        for one in found
    ]


def event(one: TaskEvent) -> dict[str, Any]:
    """Return an event of a task."""
    return {
        "number": one.number,
        "timestamp": time_of(one.time_ms),
        "kind": one.kind,
        "state": str(one.state),
        "detail": one.detail,
    }


def _times(task: AgentTask) -> dict[str, Any]:
    until = task.ended_ms or time.time_ns() // 1_000_000
    return {
        "started_at": time_of(task.started_ms),
        "completed_at": time_of(task.ended_ms),
        "duration_seconds": max(0, until - task.started_ms) // 1000 if task.started_ms else None,
    }


def time_of(milliseconds: int) -> str | None:
    """Return a time as the API writes it; None: it is not yet."""
    return timestamp(milliseconds / 1000) if milliseconds else None


def _usage(task: AgentTask) -> dict[str, int] | None:
    return {"input": task.usage.input, "output": task.usage.output} if any(task.usage) else None


def _reported(found: Reported | None) -> dict[str, int] | None:
    return {"input": found.input, "output": found.output} if found is not None and found.requests else None
