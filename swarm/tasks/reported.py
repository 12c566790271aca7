"""What the program of a task reports of itself while it works (OpenTelemetry): figures, and never a text.

Of a report only sums are kept, in `reported.json` of the task's folder; they go when the task goes from the history.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit import files
from swarm.machine import records
from swarm.programs import registry
from swarm.project.config.sections import Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swarm.tasks.store import Store

FILE = "reported.json"
#: The resource attribute that names the task.
TASK = "swarm.task"
_MOST_ITEMS = 5000
_LARGEST = 1e12


def variables(program: str, port: int, token: str, task_id: str, agent: str) -> dict[str, str]:
    """Return the variables with which the program of a task reports of itself to a served agent's server.

    Args:
        program: by its name; empty: any command.
    """
    known = registry.program(program).telemetry(Telemetry(protocol="http/json")) if program else {}
    return {
        **known,
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}/otlp",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {token}",
        "OTEL_RESOURCE_ATTRIBUTES": f"{TASK}={task_id},swarm.agent={agent}",
    }


class Reported(NamedTuple):
    """Sums of what a program reported.

    Attributes:
        requests, errors: requests to its model, and those that failed.
        request_ms: how long the requests took, together.
        tools: calls of its tools.
        cost: US dollars, as the program counts.
        input, output, cache_read, cache_write: tokens.
        active_seconds: how long it worked.
    """

    requests: int = 0
    errors: int = 0
    request_ms: int = 0
    tools: int = 0
    cost: float = 0.0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    active_seconds: float = 0.0

    def plus(self, more: Reported) -> Reported:
        """Return the sums of both."""
        sums: Any = (mine + theirs for mine, theirs in zip(self, more, strict=True))
        return Reported(*sums)


_NOTHING = Reported()
#: Fields of a request to the model, with the attribute that says each.
_OF_REQUEST = {
    "request_ms": "duration_ms",
    "cost": "cost_usd",
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_creation_tokens",
}
_EVENTS = {"api_request": "requests", "api_error": "errors", "tool_result": "tools"}


def read(store: Store, task_id: str) -> Reported | None:
    """Return what the program of a task reported; None: nothing."""
    try:
        said = records.read_object(str(store.folder(task_id) / FILE))
        return Reported(**{name: _number(said[name], type(zero)) for name, zero in _NOTHING._asdict().items()})
    except (OSError, ValueError, KeyError):
        return None


def add(store: Store, task_id: str, more: Reported) -> None:
    """Add to the sums of a task; the caller sees to it that nobody else does so at this moment.

    Raises:
        OSError
    """
    data = json.dumps((read(store, task_id) or _NOTHING).plus(more)._asdict()).encode("ascii")
    files.write_atomic(store.folder(task_id) / FILE, data, 0o600, durable=False)


# --- reports ------------------------------------------------------------------------------------


def of_logs(body: Mapping[str, Any]) -> dict[str, Reported]:
    """Return the sums of a report of events, by task.

    Raises:
        ValueError: it is none.
    """
    return _sums(body, "resourceLogs", "scopeLogs", "logRecords", _of_event)


def of_metrics(body: Mapping[str, Any]) -> dict[str, Reported]:
    """Return the sums of a report of measurements, by task: of these only the time of work, the rest is in the events.

    Raises:
        ValueError: it is none.
    """
    return _sums(body, "resourceMetrics", "scopeMetrics", "metrics", _of_metric)


def _sums(body: Mapping[str, Any], *names: Any) -> dict[str, Reported]:
    resources, scopes, items, read_one = names
    found: dict[str, Reported] = {}
    seen = 0
    for resource in _listed(body.get(resources)):
        task_id = _attributes(_mapping(resource.get("resource"))).get(TASK)
        for scope in _listed(resource.get(scopes)):
            for item in _listed(scope.get(items)):
                seen += 1
                if seen > _MOST_ITEMS:
                    raise ValueError(f"a report may have {_MOST_ITEMS} entries")
                if isinstance(task_id, str):
                    found[task_id] = found.get(task_id, _NOTHING).plus(read_one(item))
    return found


def _of_event(item: Mapping[str, Any]) -> Reported:
    about = _attributes(item)
    counted = _EVENTS.get(str(about.get("event.name", "")).rpartition(".")[2])
    if counted is None:
        return _NOTHING
    found: dict[str, Any] = {counted: 1}
    if counted == "requests":
        zeros = _NOTHING._asdict()
        found |= {name: _number(about.get(said, 0), type(zeros[name])) for name, said in _OF_REQUEST.items()}
    return Reported(**found)


def _of_metric(item: Mapping[str, Any]) -> Reported:
    total = _mapping(item.get("sum"))
    if not str(item.get("name", "")).endswith("active_time.total") or total.get("aggregationTemporality") not in _DELTA:
        return _NOTHING
    points = (one.get("asDouble", one.get("asInt", 0)) for one in _listed(total.get("dataPoints")))
    return Reported(active_seconds=math.fsum(_number(one, float) for one in points))


#: Each report has what came since the last one; sums since the start would be counted again and again.
_DELTA = (1, "AGGREGATION_TEMPORALITY_DELTA")


def _attributes(item: Mapping[str, Any]) -> dict[str, object]:
    return {str(one.get("key")): _value(_mapping(one.get("value"))) for one in _listed(item.get("attributes"))}


def _value(said: Mapping[str, Any]) -> object:
    return next((said[kind] for kind in ("stringValue", "intValue", "doubleValue", "boolValue") if kind in said), None)


def _listed(raw: object) -> Iterator[Mapping[str, Any]]:
    if raw is None:
        return
    if not isinstance(raw, list):
        raise ValueError("it is no report of OpenTelemetry")  # noqa: TRY004  # one kind for all that is wrong with it
    yield from map(_mapping, raw)


def _mapping(raw: object) -> Mapping[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ValueError("it is no report of OpenTelemetry")  # noqa: TRY004  # one kind for all that is wrong with it
    return raw


def _number(raw: object, kind: type) -> Any:
    """Return a figure; what is none, or cannot be one, is a mistake of whoever reports."""
    found = float(raw) if isinstance(raw, (int, float, str)) and not isinstance(raw, bool) else math.nan
    if not math.isfinite(found) or not 0 <= found <= _LARGEST:
        raise ValueError("a figure is no number")
    return kind(found)
