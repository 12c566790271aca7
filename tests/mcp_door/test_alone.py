"""A door without a server: tools, results, errors, waits, and who one is."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from swarm.project import server
from swarm.testing.terminal import wait_for
from tests.support.puppet import Door

if TYPE_CHECKING:
    from tests.support.puppet import Puppets

pytestmark = pytest.mark.integration


def test_an_agent_sends_and_takes_messages_by_tools(puppets: Puppets) -> None:
    """TREE-22, CLI-09: without a daemon; what is sent by a tool is what the library shows, and the other way."""
    with puppets.door("developer@fx") as door:
        said = door.hello()
        assert said["serverInfo"]["name"] == "swarm"
        assert "inbox_take" in said["instructions"]
        tools = door.tools()
        assert {"send_message", "inbox_take", "inbox_ack", "report"} <= set(tools)
        assert all("outputSchema" in one and one["inputSchema"]["type"] == "object" for one in tools.values())

        (sent,) = door.call("send_message", to="reviewer", body="please look", subject="parser")["sent"]
        stored = puppets.lab.swarm.messages.get(sent["id"])[0].stored.message
        assert (stored.sender, stored.to, stored.body) == ("developer@fx", "reviewer@fx", "please look")

        puppets.lab.swarm.send("developer@fx", "paint it blue")
        (taken,) = door.call("inbox_take")["messages"]
        assert (taken["sender"], taken["body"]) == ("user", "paint it blue")
        assert door.call("inbox_take")["again"] is True
        assert door.call("inbox_ack", ids=[taken["id"]]) == {"acknowledged": [taken["id"]]}
        assert door.call("inbox_take")["messages"] == []
        assert puppets.lab.swarm.messages.get(taken["id"])[0].stored.state == "acked"


def test_only_the_agent_itself_opens_its_door(puppets: Puppets) -> None:
    """TREE-12: identity is seen, never said: by a wrong name, another environment, or none at all."""
    root = str(puppets.lab.root)
    swarm_mcp = [sys.executable, "-P", "-m", "swarm", "-C", root, "mcp"]
    for name in ("reviewer", "reviewer@fx", "developer@other", "nobody"):
        done = puppets.done("developer@fx", [*swarm_mcp, "--agent", name])
        assert done.returncode == 4, done
        assert f"cannot act as agent {name}: this process belongs to agent developer@fx" in done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
    stranger = puppets.lab.cli("mcp", "--agent", "developer")
    assert stranger.returncode == 4
    assert "belongs to no agent" in stranger.stderr
    bad = puppets.done("developer@fx", [*swarm_mcp, "--agent", "../x"])
    assert bad.returncode == 2
    log = "\n".join(server.refusals(puppets.lab.root / ".swarm"))
    assert "cannot act as agent reviewer: this process belongs to agent developer@fx" in log
    assert "this process belongs to no agent" in log

    # another's words in the environment, or no environment at all, change nothing
    lie = {"SWARM_RUN_DIR": str(puppets.lab.run("reviewer")), "SWARM_ACTOR": "reviewer", "PATH": os.environ["PATH"]}
    for env in (lie, {}):
        with puppets.door("developer@fx", env=env, keep=False) as door:
            door.hello()
            door.call("report", message="hello")
        assert puppets.lab.swarm.messages.inbox("user")[-1].message.sender == "developer@fx"


def test_the_command_opens_the_same_door(puppets: Puppets) -> None:
    """CLI-09: with the agent's name, and without one, since it is seen."""
    argv = [sys.executable, "-P", "-m", "swarm", "-C", str(puppets.lab.root), "mcp"]
    for words in ([], ["--agent", "developer"]):
        door = Door(puppets.run("developer@fx", [*argv, *words]))
        door.hello()
        assert "report" in door.tools()
        door.close()


def test_an_error_is_a_result_with_code_and_hint(puppets: Puppets) -> None:
    with puppets.door("developer@fx") as door:
        door.hello()
        unknown = door.call("send_message", to="nobody", body="x")["error"]
        assert unknown["code"] == "AGENT_NOT_FOUND"
        assert unknown["hint"]
        for tool, given, word in (
            ("send_message", {"to": "user"}, "body"),
            ("send_message", {"to": "user", "body": ""}, "body"),
            ("send_message", {"to": "user", "body": 7}, "body"),
            ("send_message", {"to": "user", "body": "x", "sender": "reviewer"}, "sender"),
            ("inbox_take", {"limit": 0}, "limit"),
            ("inbox_take", {"wait_seconds": 1e9}, "wait_seconds"),
            ("inbox_ack", {"ids": "x"}, "ids"),
            ("report", {"message": "x", "session": "other"}, "session"),
            ("report", {"message": ""}, "message"),
            ("notify_parent", {"status": "success", "message": ""}, "message"),
            ("notify_parent", {"status": "done", "message": "x"}, "status"),
            ("fly", {}, "fly"),
        ):
            error = door.call(tool, **given)["error"]
            assert (error["code"], word in error["message"]) == ("USAGE", True), error
            assert "\n" not in error["message"]
        assert door.call("inbox_ack", ids=["018bcfe568001f2e3d4c5b6a7988"])["error"]["code"] == "CLAIM_LOST"
        assert puppets.lab.swarm.messages.inbox("user") == ()


def test_a_wait_that_the_client_gives_up_takes_nothing(puppets: Puppets) -> None:
    """What comes after is for the next wait."""
    with puppets.door("developer@fx") as door:
        door.hello()
        number = door.begin("tools/call", {"name": "inbox_take", "arguments": {"wait_seconds": 600}})
        door.call("report", message="a wait holds up no other call")
        door.tell("notifications/cancelled", {"requestId": number, "reason": "user"})
        door.call("report", message="after")
        began = time.monotonic()
        waiting = door.begin("tools/call", {"name": "inbox_take", "arguments": {"wait_seconds": 60}})
        puppets.lab.swarm.send("developer@fx", "for the second wait")
        found = door.answer(waiting)["structuredContent"]
        assert [one["body"] for one in found["messages"]] == ["for the second wait"]
        assert found["again"] is False
        assert time.monotonic() - began < 30
        assert door.call("inbox_take", wait_seconds=0.1)["again"] is True


def test_a_door_ends_with_its_program(puppets: Puppets) -> None:
    with puppets.door("developer@fx") as door:
        door.hello()
        pid = door.process.pid
        waiting = door.begin("tools/call", {"name": "inbox_take", "arguments": {"wait_seconds": 600}})
        assert waiting
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the door", 20)


def test_ctrl_c_ends_a_door_without_a_word(puppets: Puppets) -> None:
    with puppets.door("developer@fx") as door:
        door.hello()
        os.kill(door.process.pid, signal.SIGINT)
        assert door.process.wait() == -signal.SIGINT
        assert door.process.stderr.read() == b""
