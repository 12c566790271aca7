"""The tree by tools: spawn, notify, wait, list; with and without a server."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Puppets

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("served", [False, True], ids=["alone", "served"])
def test_a_lead_spawns_by_tools_and_hears_of_each_end_once(puppets: Puppets, server: Serving, served: bool) -> None:
    """TREE-03, TREE-08, TREE-11, TREE-14, TREE-22, TREE-25: the whole way by MCP."""
    for role in ("lead", "worker"):  # children are puppets, too
        words = {"name": role, "description": "a role of the test", "instructions": "You help."}
        puppets.lab.write({f"roles/{role}.yaml": json.dumps({**words, "command": [str(puppets.program)]})})
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
        notes = puppets.lab.root / ".swarm/sessions/fx/run/developer"
        with puppets.door(address) as child:
            child.hello()
            own = child.tools()
            assert "notify_parent" in own
            assert not {"spawn_subtree", "spawn_worker", "wait_for_event"} & set(own)
            assert child.call("spawn_worker", name="x", prompt="y")["error"]["code"] == "NOT_FOR_AGENTS"
            waiting = lead.begin("tools/call", {"name": "wait_for_event", "arguments": {"timeout_seconds": 60}})
            wait_for(lambda: any(notes.glob("wait-*.json")), "the lead to wait")
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
