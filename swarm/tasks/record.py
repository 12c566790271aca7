"""The record of a task as JSON: every field of ``AgentTask`` by its name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from swarm.project import codec
from swarm.project.errors import RecordProblem
from swarm.tasks.values import (
    AgentTask,
    FailureType,
    InPane,
    Place,
    TaskEvent,
    TaskFailure,
    TaskRun,
    TaskState,
    TokenUsage,
    TurnReceipt,
)


def to_bytes(task: AgentTask) -> bytes:
    """Return the record. ``operations`` in it opens the gates of supervisors."""
    plain = {one.name: getattr(task, one.name) for one in fields(task)}
    plain["runs"] = [_run_to_dict(run) for run in task.runs]
    plain["receipts"] = [list(one) for one in task.receipts]
    plain["pane"] = task.pane and task.pane._asdict()
    plain["usage"] = task.usage._asdict()
    plain["failure"] = _failure_to_dict(task.failure)
    plain["box"] = codec.boxed_to_dict(task.box)
    plain["last_event"] = task.last_event and event_to_dict(task.last_event)
    return codec.encode(plain)


def from_bytes(data: bytes, source: str) -> AgentTask:
    """Read a record back.

    Raises:
        RecordProblem: it is none.
    """
    record = codec.decode(data, source)
    unknown = sorted(record.keys() - {one.name for one in fields(AgentTask)})
    if unknown:
        raise RecordProblem(f"cannot read {source}: unknown field {unknown[0]}")
    try:
        return _task(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordProblem(f"cannot read {source}: {type(error).__name__}: {error}") from error


def _task(record: dict[str, Any]) -> AgentTask:
    plain = {name: value for name, value in record.items() if name not in _ODD}
    for name in ("prompts", "command", "operations"):
        plain[name] = _texts(record[name])
    for one in fields(AgentTask):
        if one.name in plain and one.type in _PLAIN and not isinstance(plain[one.name], _PLAIN[str(one.type)]):
            raise TypeError(f"{one.name} has a wrong type")
    return AgentTask(
        **plain,
        state=TaskState(record["state"]),
        place=Place(record["place"]),
        runs=tuple(_run(one) for one in record["runs"]),
        receipts=tuple(TurnReceipt(str(name), int(turn)) for name, turn in record.get("receipts", ())),
        pane=InPane(**record["pane"]) if record.get("pane") else None,
        usage=TokenUsage(int(record["usage"]["input"]), int(record["usage"]["output"])),
        failure=_failure(record["failure"]),
        box=codec.boxed_of(record.get("box")),
        last_event=record["last_event"] and event_from_dict(record["last_event"]),
    )


_ODD = frozenset({"state", "place", "runs", "receipts", "pane", "usage", "failure", "last_event", "box"})
_PLAIN: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "bool": (bool,), "float": (int, float)}


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError("a list of texts is wanted")
    return tuple(value)


def _run_to_dict(run: TaskRun) -> dict[str, Any]:
    return {**run._asdict(), "failure": _failure_to_dict(run.failure)}


def _run(data: Any) -> TaskRun:
    return TaskRun(**{**data, "failure": _failure(data["failure"])})


def _failure_to_dict(failure: TaskFailure | None) -> dict[str, Any] | None:
    return failure and failure._asdict()


def _failure(data: Any) -> TaskFailure | None:
    return data and TaskFailure(FailureType(data["type"]), str(data["message"]), data["retryable"] is True)


def event_to_dict(event: TaskEvent) -> dict[str, Any]:
    """Return the JSON shape of an event."""
    return event._asdict()


def event_from_dict(data: Any) -> TaskEvent:
    """Read an event back.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    return TaskEvent(
        int(data["number"]),
        int(data["time_ms"]),
        str(data["kind"]),
        TaskState(data["state"]),
        str(data.get("detail", "")),
        str(data.get("operation", "")),
    )
