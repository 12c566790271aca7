"""Doors of agents outside of any repository: ``swarm run`` in a plain folder, with a swarm directory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.api import serving
from swarm.machine.mcp import door as entry
from swarm.project import server
from swarm.project.swarm_dir import dirs
from swarm.testing.terminal import wait_for
from tests.support.puppet import Door, Puppets

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class Home:
    """A swarm directory with puppets that work in a plain folder."""

    def __init__(self, panes: PaneLab, folder: Path) -> None:
        self.folder = folder / "team"
        dirs.init_dir(self.folder)
        self.panes = panes
        panes.env |= {"SWARM_DIR": str(self.folder), "SWARM_AGENTS_NUDGE": "never"}
        self.puppets = Puppets(panes)
        self.work = folder / "work"
        self.work.mkdir()
        role = {"name": "worker", "instructions": "You help.", "command": [str(self.puppets.program)]}
        (self.folder / "roles/worker.yaml").write_text(json.dumps(role))

    @property
    def swarm(self) -> Swarm:
        return self.panes.open(self.work)

    def run(self, name: str) -> str:
        """Start a puppet; return its address."""
        self.swarm.run(name=name, command=[str(self.puppets.program)], directory=self.work)
        return f"{name}@{name}"

    def door(self, agent: str, name: str = "") -> Door:
        """Open an agent's door, as its program does."""
        argv = [sys.executable, "-I", "-S", entry.__file__, str(self.folder), name or agent.partition("@")[0]]
        return Door(self.puppets.run(agent, argv))


@pytest.fixture
def home(panes: PaneLab, tmp_path: Path) -> Home:
    return Home(panes, tmp_path)


def test_an_agent_in_a_plain_folder_has_its_tools(home: Home) -> None:
    """SESS-02 meets TREE-22: it reports, spawns a worker, and is told of its outcome."""
    lead = home.door(home.run("foo"))
    lead.hello()
    tools = set(lead.tools())
    assert {"report", "inbox_take", "spawn_worker", "wait_for_event"} <= tools
    assert "spawn_subtree" not in tools, "that needs git"
    assert lead.call("spawn_subtree", task="x", branch_name="y")["error"]["code"] == "NOT_A_REPO"
    lead.call("report", message="hello")
    assert [(one.message.sender, one.message.body) for one in home.swarm.messages.inbox("user")] == [
        ("foo@foo", "hello")
    ]

    made = lead.call("spawn_worker", name="helper", prompt="help", timeout=120)["agent"]
    assert (made["parent"], made["path"]) == ("foo@foo", str(home.work))
    child = home.door(made["address"])
    child.hello()
    assert child.call("notify_parent", status="success", message="done")["parent"] == "foo@foo"
    event = lead.call("wait_for_event", timeout_seconds=60)["event"]
    assert (event["worker"], event["text"]) == (made["address"], "done")
    for one in (child, lead):
        one.close()


def test_nobody_else_opens_its_door_there(home: Home) -> None:
    home.run("foo")
    other = home.run("bar")
    argv = [sys.executable, "-I", "-S", entry.__file__, str(home.folder), "foo"]

    done = home.puppets.done(other, argv)

    assert done.returncode == 4, done
    assert "this process belongs to agent bar@bar" in done.stderr
    assert "cannot act as agent foo" in "\n".join(server.refusals(home.folder))


def test_a_server_of_the_swarm_directory_serves_it(home: Home) -> None:
    """TREE-18: one for all that has its home there."""
    agent = home.run("foo")
    made = subprocess.Popen([sys.executable, "-P", "-m", "swarm", "serve"], cwd=home.work, env=home.panes.env)
    try:
        wait_for(lambda: serving.status(home.folder) is not None, "the server", 60)
        assert (home.folder / "server.pid").read_text().strip() == str(made.pid)
        door = home.door(agent)
        door.hello()
        door.call("report", message="by the server")
        assert [one.message.body for one in home.swarm.messages.inbox("user")] == ["by the server"]
        door.close()
    finally:
        made.terminate()
        assert made.wait(30) == 0
