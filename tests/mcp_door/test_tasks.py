"""Waits as tasks: for clients that declare them, and kept by nobody."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Door, Puppets

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
EXTENSION = "io.modelcontextprotocol/tasks"


def ask(door: Door, method: str, *, declared: bool = True, **params: Any) -> dict[str, Any]:
    """Make a request as a client of the protocol of 2026-07-28 does: each one says what the client can."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}} if declared else {},
    }
    return door.ask(method, {**params, "_meta": meta}, timeout=180)


def wait(door: Door, *, declared: bool = True, **given: Any) -> dict[str, Any]:
    return ask(door, "tools/call", declared=declared, name="wait_for_event", arguments=given)


def lead_and_helper(puppets: Puppets, lead: Door) -> str:
    """Spawn a worker of a lead; return its address."""
    words = {"name": "worker", "description": "a role of the test", "instructions": "You help."}
    puppets.lab.write({"roles/worker.yaml": json.dumps({**words, "command": [str(puppets.program)]})})
    made = ask(lead, "tools/call", name="spawn_worker", arguments={"name": "helper", "prompt": "help"})
    address: str = made["structuredContent"]["agent"]["address"]
    return address


def test_a_wait_is_a_task_that_ends_with_the_event(puppets: Puppets) -> None:
    with puppets.door("developer@fx") as lead:
        assert EXTENSION in ask(lead, "server/discover")["capabilities"]["extensions"]
        address = lead_and_helper(puppets, lead)

        task = wait(lead)
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert 0 < task["pollIntervalMs"] <= 5000
        assert ask(lead, "tasks/get", taskId=task["taskId"])["status"] == "working"

        with puppets.door(address) as child:
            child.hello()
            child.call("notify_parent", status="success", message="done")
        found = ask(lead, "tasks/get", taskId=task["taskId"])
        assert found["status"] == "completed"
        event = found["result"]["structuredContent"]["event"]
        assert (event["kind"], event["worker"], event["text"]) == ("WorkerComplete", address, "done")
        assert ask(lead, "tasks/get", taskId=task["taskId"])["result"] == found["result"], "it takes nothing"
        again = wait(lead)
        assert again["structuredContent"]["event"] == event, "what is there needs no task"
        after = found["result"]["structuredContent"]["cursor"]
        assert wait(lead, after=after, kinds=["WorkerComplete"])["status"] == "working"


def test_a_task_lives_on_with_the_next_server(puppets: Puppets, server: Serving) -> None:
    server.start()
    with puppets.door("developer@fx") as lead:
        address = lead_and_helper(puppets, lead)
        task = wait(lead, kinds=["WorkerComplete"])
        server.end(signal.SIGKILL)
        with puppets.door(address) as child:
            child.hello()
            child.call("notify_parent", status="failure", message="no")
        server.start()
        lost = ask(lead, "tasks/get", taskId=task["taskId"])
        found = ask(lead, "tasks/get", taskId=task["taskId"]) if "rpc_error" in lost else lost
        assert found["result"]["structuredContent"]["event"]["status"] == "failure"


def test_who_does_not_declare_tasks_waits_for_a_bounded_time(puppets: Puppets) -> None:
    with puppets.door("developer@fx") as lead:
        plain = wait(lead, declared=False, timeout_seconds=0.1)
        assert plain["structuredContent"]["event"] is None
        assert wait(lead, timeout_seconds=0)["structuredContent"]["event"] is None


def test_a_task_whose_time_is_over_ends_without_an_event(puppets: Puppets) -> None:
    with puppets.door("developer@fx") as lead:
        task = wait(lead, timeout_seconds=0.001)
        found = ask(lead, "tasks/get", taskId=task["taskId"])
        assert (found["status"], found["result"]["structuredContent"]["event"]) == ("completed", None)
        assert ask(lead, "tasks/cancel", taskId=task["taskId"])["status"] == "cancelled"


def test_a_task_that_there_is_not_is_an_error(puppets: Puppets) -> None:
    with puppets.door("developer@fx") as lead:
        for name in (
            "",
            "wait-e1",
            "x" * 5000,
            "wait-e99-1-99999999999999-",
            "wait-e1-1-1-../x",
            "wait-e0-1-1-Nothing",
        ):
            found = ask(lead, "tasks/get", taskId=name)
            failed = "rpc_error" in found or found["result"].get("isError")
            assert failed, (name, found)
        for given in ({"timeout_seconds": -1}, {"timeout_seconds": "x"}, {"kinds": 7}, {"after": "x"}):
            assert wait(lead, **given)["isError"], given
