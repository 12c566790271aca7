"""The server of a repository: forwarding doors, one at a time, its end, and what takes over."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from swarm.api import serving
from swarm.project import server as place
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Puppets

pytestmark = pytest.mark.integration


def test_a_door_forwards_to_the_server_and_is_its_agent(puppets: Puppets, server: Serving) -> None:
    """TREE-18, TREE-12: the server acts as whoever is seen at the other end, each time."""
    server.start()
    with puppets.door("developer@fx") as one, puppets.door("reviewer@fx") as other:
        for door in (one, other):
            door.hello()
        assert sorted(one.tools()) == sorted(other.tools())
        (sent,) = one.call("send_message", to="reviewer", body="from one")["sent"]
        (taken,) = other.call("inbox_take")["messages"]
        assert (taken["id"], taken["sender"], taken["body"]) == (sent["id"], "developer@fx", "from one")
        other.call("report", message="from the other")
        told = [(one.message.sender, one.message.body) for one in puppets.lab.swarm.messages.inbox("user")]
        assert told == [("reviewer@fx", "from the other")]
        # neither process has loaded more than it needs to forward lines
        assert "forward" in _modules(one.process.pid)


def _modules(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().decode()
    assert "mcp_door" not in words, "it serves by itself"
    return words.replace("door.py", "forward")


def test_one_server_per_repository_and_the_pid_file_goes_with_it(puppets: Puppets, server: Serving) -> None:
    """TREE-18: the second one is refused; SIGTERM and Ctrl-C end it cleanly."""
    for signum in (signal.SIGTERM, signal.SIGINT):
        server.start()
        assert server.process is not None
        assert (puppets.lab.root / ".swarm/server.pid").read_text() == f"{server.process.pid}\n"
        second = puppets.lab.cli("serve")
        assert second.returncode == 3
        assert str(server.process.pid) in second.stderr
        assert server.end(signum) == 0
        assert not (puppets.lab.root / ".swarm/server.pid").exists()
        assert serving.status(puppets.lab.root) is None
        assert not (place.folder_of(puppets.lab.root / ".swarm") / "socket").exists()


def test_after_kill_9_the_next_one_takes_over_under_living_doors(puppets: Puppets, server: Serving) -> None:
    """TREE-18: the door shakes hands again by itself; its program sees nothing of it."""
    server.start()
    with puppets.door("developer@fx") as door:
        door.hello()
        door.call("report", message="first")
        server.end(signal.SIGKILL)
        assert (puppets.lab.root / ".swarm/server.pid").exists(), "nobody could remove it"
        assert serving.status(puppets.lab.root) is None, "whether it lives is not the file's to say"
        server.start()
        door.call("report", message="second")
        server.end(signal.SIGKILL)
        door.call("report", message="third, and nobody serves")
    bodies = [one.message.body for one in puppets.lab.swarm.messages.inbox("user")]
    assert bodies == ["first", "second", "third, and nobody serves"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=lambda how: how.name)
def test_a_call_that_was_under_way_when_the_server_ended_is_answered_and_not_made_twice(
    puppets: Puppets, server: Serving, how: signal.Signals
) -> None:
    server.start()
    with puppets.door("developer@fx") as door:
        door.hello()
        waiting = door.begin("tools/call", {"name": "inbox_take", "arguments": {"wait_seconds": 40}})
        door.call("list_agents")  # it is answered after what came before it was heard
        assert server.end(how) == (0 if how == signal.SIGTERM else -how)
        found = door.answer(waiting)
        assert found.get("isError"), found
        assert found["structuredContent"]["error"]["code"] == "SERVER_LOST"
        assert door.call("inbox_take")["messages"] == []


def test_a_server_is_for_people(puppets: Puppets) -> None:
    done = puppets.done("developer@fx", ["swarm", "-C", str(puppets.lab.root), "serve"])
    assert done.returncode == 4
    assert "developer@fx" in done.stderr


def test_a_taken_port_is_said(puppets: Puppets, server: Serving) -> None:
    port = server.start()
    server.end()
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        done = puppets.lab.cli("serve", "--port", str(port))
    assert done.returncode == 5, done.stderr
    assert str(port) in done.stderr
    assert serving.status(puppets.lab.root) is None
    wait_for(lambda: not os.path.exists(puppets.lab.root / ".swarm/server.pid"), "no trace")
