"""The tree by tools: spawn, notify, wait, list; with and without a server."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.terminal import wait_for
from tests.mcp_door.test_http import CLIENT, request, token

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Door, Puppets, Started

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
#: A wait that only an outcome ends.
LONG: dict[str, Any] = {"timeout_seconds": 600, "kinds": ["WorkerComplete"]}


def children_are_puppets(puppets: Puppets) -> None:
    for role in ("lead", "worker"):
        words = {"name": role, "description": "a role of the test", "instructions": "You help."}
        puppets.lab.write({f"roles/{role}.yaml": json.dumps({**words, "command": [str(puppets.program)]})})


def waits(puppets: Puppets) -> bool:
    """Whether a note of developer@fx says that it waits."""
    return any((puppets.lab.root / ".swarm/sessions/fx/run/developer").glob("wait-*.json"))


def wait_by_http(puppets: Puppets, port: int) -> Started:
    """Begin a wait by HTTP, in a process of developer@fx."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait_for_event", "arguments": LONG}}
    asked = {**request(port, "developer", token(puppets, "developer")), "body": json.dumps(call)}
    made = puppets.run("developer@fx", [sys.executable, "-c", CLIENT])
    made.stdin.write(json.dumps({"port": port, "requests": [asked]}).encode())
    made.stdin.close()
    return made


@pytest.mark.parametrize("served", [False, True], ids=["alone", "served"])
def test_a_lead_spawns_by_tools_and_hears_of_each_end_once(puppets: Puppets, server: Serving, served: bool) -> None:
    """TREE-03, TREE-08, TREE-11, TREE-14, TREE-22, TREE-25: the whole way by MCP."""
    children_are_puppets(puppets)
    if served:
        server.start()
    with puppets.door("developer@fx") as lead:
        lead.hello()
        offered = lead.tools()
        assert {"spawn_subtree", "spawn_worker", "wait_for_event", "list_agents"} <= set(offered)
        assert "notify_parent" not in offered, "it is the root"
        assert lead.call("notify_parent", status="success", message="x")["error"]["code"] == "NO_PARENT"
        assert lead.call("wait_for_event", timeout_seconds=0)["event"] is None

        subtree = lead.call("spawn_subtree", task="write the parser", branch_name="parser", timeout=120)
        assert "error" not in subtree, subtree
        worker = lead.call("spawn_worker", name="helper", prompt="run the tests", timeout=120)
        assert "error" not in worker, worker
        address = worker["agent"]["address"]
        assert {one["address"] for one in lead.call("list_agents")["agents"]} == {
            "developer@fx",
            subtree["agent"]["address"],
            address,
        }
        with puppets.door(address) as child:
            child.hello()
            own = child.tools()
            assert "notify_parent" in own
            assert not {"spawn_subtree", "spawn_worker", "wait_for_event"} & set(own)
            assert child.call("spawn_worker", name="x", prompt="y")["error"]["code"] == "NOT_FOR_AGENTS"
            waiting = lead.begin("tools/call", {"name": "wait_for_event", "arguments": {"timeout_seconds": 60}})
            wait_for(lambda: waits(puppets), "the lead to wait")
            told = child.call("notify_parent", status="success", message="all 12 tests pass")
            began = time.monotonic()
            found = lead.answer(waiting)["structuredContent"]
            assert time.monotonic() - began < 10
        event = found["event"]
        assert (event["kind"], event["worker"], event["status"]) == ("WorkerComplete", address, "success")
        assert (event["text"], event["by"], event["id"]) == ("all 12 tests pass", "word", told["event"])
        again = lead.call("wait_for_event", timeout_seconds=0)
        assert again["event"]["id"] == event["id"], "a wait takes nothing"
        after = lead.call("wait_for_event", timeout_seconds=0, after=again["cursor"])
        assert after["event"] is None or after["event"]["id"] != event["id"]
        with puppets.door(subtree["agent"]["address"]) as deep:
            deep.hello()
            assert "spawn_subtree" not in deep.tools(), "the deepest level"
            assert "spawn_worker" in deep.tools()
            assert deep.call("spawn_subtree", task="t", branch_name="b")["error"]["code"] == "TREE_LIMIT"


@pytest.mark.parametrize("way", ["alone", "served", "http"])
def test_who_gives_up_a_wait_loses_no_event(puppets: Puppets, server: Serving, way: str) -> None:
    """TREE-14: swarm ends the wait of a client that is gone; what comes after is for the next wait."""
    children_are_puppets(puppets)
    port = 0 if way == "alone" else server.start()
    with puppets.door("developer@fx") as lead:
        lead.hello()
        made = lead.call("spawn_worker", name="helper", prompt="run the tests", timeout=120)
        client = wait_by_http(puppets, port) if way == "http" else None
        number = lead.begin("tools/call", {"name": "wait_for_event", "arguments": LONG}) if client is None else 0
        wait_for(lambda: waits(puppets), "the lead to wait", 60)
        if client is not None:
            os.kill(client.pid, signal.SIGKILL)
            client.wait()
            client.close()
        else:
            lead.tell("notifications/cancelled", {"requestId": number, "reason": "user"})
        wait_for(lambda: not waits(puppets), "the wait to end with its client", 60)

        said = outcome_of(puppets, made["agent"]["address"])

        found = lead.call("wait_for_event", **LONG)
        assert (found["event"]["id"], found["event"]["text"]) == (said, "all pass")


def outcome_of(puppets: Puppets, address: str) -> str:
    """Have a child say what came of its task; return the id of the event."""
    with puppets.door(address) as child:
        child.hello()
        event: str = child.call("notify_parent", status="success", message="all pass")["event"]
    return event


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=lambda how: how.name)
def test_who_waits_by_http_goes_on_with_the_next_server(puppets: Puppets, server: Serving, how: signal.Signals) -> None:
    """TREE-18: the call ends with its server, which ends at once; token and event are good with the next one."""
    children_are_puppets(puppets)
    port = server.start()
    with puppets.door("developer@fx") as lead:
        lead.hello()
        made = lead.call("spawn_worker", name="helper", prompt="run the tests", timeout=120)
    client = wait_by_http(puppets, port)
    wait_for(lambda: waits(puppets), "the lead to wait", 60)

    assert server.end(how) == (0 if how == signal.SIGTERM else -how)

    client.stdout.read()  # an answer or none: it ends
    client.wait()
    client.close()
    said = outcome_of(puppets, made["agent"]["address"])
    again = wait_by_http(puppets, server.start())
    line = again.stdout.readline()
    assert line, again.stderr.read().decode()
    status, body = json.loads(line)
    assert (status, said in body) == (200, True), body
    assert again.wait() == 0
    again.close()


def test_a_name_that_cannot_be_is_a_result_and_nothing_is_made(puppets: Puppets) -> None:
    """TREE-05: with dots, too long, taken."""
    before = puppets.lab.fingerprint()
    with puppets.door("developer@fx") as lead:
        lead.hello()
        for name in ("a.b", "x" * 41, "..", "-x", "a\nb"):
            assert _code(lead, "spawn_subtree", task="t", branch_name=name) == "INVALID_NAME", name
            assert _code(lead, "spawn_worker", prompt="t", name=name) == "INVALID_NAME", name
        assert _code(lead, "spawn_subtree", task="t", branch_name="fx") == "ALREADY_THERE"
        assert _code(lead, "spawn_subtree", task=" \n", branch_name="ok") == "USAGE"
        assert _code(lead, "spawn_worker", prompt=" \n", name="ok") == "USAGE"
    assert [one.name for one in puppets.lab.swarm.sessions()] == ["fx"]
    assert puppets.lab.fingerprint() == before


def _code(door: Door, tool: str, **given: Any) -> str:
    code: str = door.call(tool, **given)["error"]["code"]
    return code
