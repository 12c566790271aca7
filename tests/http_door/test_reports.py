"""What the programs of tasks report of themselves: sums in the history, by a token that is good for nothing else."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.http_door.throttle import Rate
from swarm.tasks import reported

if TYPE_CHECKING:
    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
#: What is no figure, or cannot be one.
FIGURES: tuple[Any, ...] = (-1, 1e300, "x", True, None, [])
#: A program that reports as an exporter does: by its variables alone.
REPORTER = """
import json, os, sys, urllib.request
env = os.environ
where = env["OTEL_EXPORTER_OTLP_ENDPOINT"]
headers = dict(one.split("=", 1) for one in env["OTEL_EXPORTER_OTLP_HEADERS"].split(","))
attributes = [one.split("=", 1) for one in env["OTEL_RESOURCE_ATTRIBUTES"].split(",")]
resource = {"attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes]}
def event(name, **about):
    told = [{"key": key.replace("__", "."), "value": {"stringValue": str(value)}} for key, value in about.items()]
    return {"attributes": [{"key": "event.name", "value": {"stringValue": name}}, *told]}
logs = [
    event("api_request", cost_usd=0.25, duration_ms=120, input_tokens=10, output_tokens=5, prompt="not to be kept"),
    event("claude_code.api_request", cost_usd=0.5, duration_ms=80, input_tokens=20, output_tokens=7),
    event("api_error"), event("tool_result"), event("user_prompt", prompt="not to be kept"),
]
active = {"aggregationTemporality": 1, "dataPoints": [{"asDouble": 1.5}, {"asInt": "2"}]}
sums = {"aggregationTemporality": 2, "dataPoints": [{"asDouble": 99}]}
metrics = [{"name": "claude_code.active_time.total", "sum": one} for one in (active, sums)]
bodies = {
    "logs": {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": logs}]}]},
    "metrics": {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": metrics}]}]},
    "traces": {"resourceSpans": []},
}
for kind, body in bodies.items():
    headers["Content-Type"] = "application/json"
    asked = urllib.request.Request(where + "/v1/" + kind, json.dumps(body).encode(), headers)
    print(kind, urllib.request.urlopen(asked).status)
"""


def report(task_id: str, **attributes: Any) -> dict[str, Any]:
    told = [{"key": key.replace("__", "."), "value": value} for key, value in attributes.items()]
    resource = {"attributes": [{"key": reported.TASK, "value": {"stringValue": task_id}}]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [{"attributes": told}]}]}]}


def test_the_program_of_a_task_reports_to_its_server(served: Served) -> None:
    script = served.lab.root.parent / "reporter.py"
    script.write_text(REPORTER)
    folder = served.root / "agents/rev"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"port: 9000\ntelemetry: true\ncommand: {sys.executable} {script}\n")
    served.start("--agent-cmd", f"{sys.executable} {script}")
    task_id = served.submit("report")
    done = served.until(task_id, "completed", "failed")
    assert done["output"] == "logs 200\nmetrics 200\ntraces 200\n", done
    assert done["token_usage"] == {"input": 30, "output": 12}
    details = served.ask("GET", f"/history/{task_id}")[1]
    assert details["reported"] == {
        "requests": 2,
        "errors": 1,
        "request_ms": 200,
        "tools": 1,
        "cost": 0.75,
        "input": 30,
        "output": 12,
        "cache_read": 0,
        "cache_write": 0,
        "active_seconds": 3.5,
    }
    kept = (served.root / "tasks" / task_id / reported.FILE).read_text()
    assert "not to be kept" not in kept


def test_the_token_of_reports_opens_nothing_else_and_the_other_one_no_reports(served: Served) -> None:
    served.start()
    token = (served.root / "credentials/otlp-token").read_text().strip()
    assert token != served.token
    body = report("task-x", event__name={"stringValue": "api_request"})
    assert served.ask("POST", "/otlp/v1/logs", body, token=token) == (200, {"partialSuccess": {}})
    for method, path, said in (
        ("POST", "/task", {"prompt": "x"}),
        ("GET", "/history", None),
        ("POST", "/shutdown", {}),
        ("GET", "/openapi.json", None),
    ):
        assert served.ask(method, path, said, token=token)[0] == 401, path
    assert served.ask("POST", "/otlp/v1/logs", body)[0] == 401
    assert served.ask("POST", "/otlp/v1/logs", body, token=None)[0] == 401
    assert served.ask("GET", "/otlp/v1/logs", token=token)[0] == 405
    assert served.ask("POST", "/otlp/v1/else", body, token=token)[0] == 400
    assert served.lab.swarm.tasks.list(finished=True) == ()


def test_a_report_that_is_none_changes_nothing(served: Served) -> None:
    served.start()
    token = (served.root / "credentials/otlp-token").read_text().strip()
    task_id = served.submit("wait")
    name = {"stringValue": "api_request"}
    wrong: list[Any] = [
        {"resourceLogs": 1},
        {"resourceLogs": [1]},
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [7]}]}]},
        *(report(task_id, event__name=name, cost_usd={"doubleValue": one}) for one in FIGURES),
        *(report(task_id, event__name=name, input_tokens={"intValue": one}) for one in ("nan", "inf", "9" * 400)),
    ]
    for body in wrong:
        assert served.ask("POST", "/otlp/v1/logs", body, token=token)[0] == 400, body
    many = report(task_id, event__name=name)
    many["resourceLogs"][0]["scopeLogs"][0]["logRecords"] *= 5001
    assert served.ask("POST", "/otlp/v1/logs", many, token=token)[0] in (400, 413)
    for other in ("none", "../x", "", "x" * 100):
        assert served.ask("POST", "/otlp/v1/logs", report(other, event__name=name), token=token)[0] == 200
    head = f"POST /otlp/v1/logs HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {token}\r\n"
    packed = served.raw(f"{head}Content-Type: application/x-protobuf\r\nContent-Length: 1\r\n\r\nx".encode())
    assert packed.startswith(b"HTTP/1.1 415 ")
    body = json.dumps(report(task_id, event__name=name, input_tokens={"intValue": "5"})).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)  # as older programs send it
    kind = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert served.raw(f"{head}{kind}".encode() + chunked).startswith(b"HTTP/1.1 200 ")
    served.gate.touch()
    served.until(task_id, "completed")
    details = served.ask("GET", f"/history/{task_id}")[1]["reported"]
    assert (details["requests"], details["input"], details["cost"]) == (1, 5, 0)
    assert [one.name for one in (served.root / "tasks").iterdir() if one.name.startswith("task-")] == [task_id]


def test_reports_have_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is not kept from its work by a program that reports without end."""
    now = 0.0
    monkeypatch.setattr("swarm.http_door.throttle.time.monotonic", lambda: now)
    rate = Rate(3)
    assert [rate.allows() for _ in range(5)] == [True, True, True, False, False]
    now = 61.0
    assert [rate.allows() for _ in range(4)] == [True, True, True, False]
