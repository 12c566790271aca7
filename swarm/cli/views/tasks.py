"""Tasks as data for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.cli.text import iso

if TYPE_CHECKING:
    from swarm import AgentTask, TaskEvent, TaskRun


def task_data(task: AgentTask) -> dict[str, Any]:
    """Return a task as data."""
    failure = task.failure
    return {
        "id": task.id,
        "state": task.shown,
        "detail": task.state,
        "prompts": list(task.prompts),
        "program": task.program,
        "command": list(task.command),
        "model": task.model,
        "role": task.role,
        "agent": task.agent,
        "place": task.place,
        "session": task.session_id,
        "pane": task.pane.address if task.pane else None,
        "workdir": task.workdir,
        "box": task.box.by if task.box else "",
        "by": task.by,
        "hold": task.hold,
        "timeout": task.timeout,
        "tries": task.tries,
        "accepted_at": iso(task.created_ms),
        "started_at": iso(task.started_ms),
        "ended_at": iso(task.ended_ms),
        "due_at": iso(task.due_ms),
        "exit_code": task.exit_code,
        "output": task.output,
        "tokens": {"input": task.usage.input, "output": task.usage.output},
        "failure": {"type": failure.type, "message": failure.message, "retryable": failure.retryable}
        if failure
        else None,
        "runs": [_run(run) for run in task.runs],
        "events": task.events,
    }


def _run(run: TaskRun) -> dict[str, Any]:
    return {
        "run": run.operation,
        "turn": run.turn,
        "resumed": run.resumed,
        "started_at": iso(run.started_ms),
        "ended_at": iso(run.ended_ms),
        "pid": run.pid,
        "cause": run.cause,
        "exit_code": run.exit_code,
        "signal": run.signal,
    }


def event_data(event: TaskEvent) -> dict[str, Any]:
    """Return an event of a task as data."""
    return {
        "number": event.number,
        "at": iso(event.time_ms),
        "kind": event.kind,
        "state": event.state,
        "detail": event.detail,
        "run": event.operation,
    }
