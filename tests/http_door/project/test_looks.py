"""What whoever has a token sees of a project; and what nobody sees who has none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from swarm.services.proof import prove
from swarm.testing.terminal import wait_for
from tests.support.puppet import Puppets

if TYPE_CHECKING:
    from tests.http_door.project.conftest import Project

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_without_a_token_it_says_that_it_lives_and_nothing_of_the_project(project: Project) -> None:
    project.configure()
    project.start()
    code, said = project.ask("GET", "/status", token=None)
    assert code == 200
    assert (said["type"], said["interfaces"], said["project"]) == ("helper", ["statusable", "observable"], None)
    assert (said["config"]["port"], said["log"], said["current_task"]) == (project.port, [], None)
    _, said = project.ask("GET", "/status")
    assert said["project"] == {
        **dict.fromkeys(("sessions", "approvals", "event", "watchers"), 0),
        "agents": {},
        "tasks": {},
        "problems": [],
    }
    assert [one["message"] for one in said["log"]][-1] == "ready"
    nonce = "0123456789abcdef" * 2
    shown = project.ask("GET", "/status", token=None, **{"Swarm-Nonce": nonce})[1]["proof"]
    assert shown == prove(project.token.encode(), nonce, "127.0.0.1", project.port)
    for path in ("agents", "sessions", "usage", "approvals", "messages", "tasks", "history", "queues", "events"):
        assert project.ask("GET", f"/{path}", token=None)[1]["error"] == "unauthorized"
        assert project.ask("GET", f"/{path}")[0] == 200


def test_agents_are_shown_as_the_command_line_shows_them(project: Project) -> None:
    puppets = Puppets(project.lab)
    puppets.start("fx", "developer,reviewer")
    project.start()
    wait_for(lambda: len(project.ask("GET", "/agents")[1]["agents"]) == 2, "two agents")
    named = [(one["name"], one["session"]) for one in project.ask("GET", "/agents")[1]["agents"]]
    assert sorted(named) == [("developer", "fx"), ("reviewer", "fx")]
    (session,) = project.ask("GET", "/sessions")[1]["sessions"]
    assert (session["session"], len(session["agents"])) == ("fx", 2)

    known = json.loads(project.lab.cli("--json", "why", "developer").stdout)["data"]
    for path in ("/agents/developer", "/agents/developer@fx", "/agents/developer@fx/why"):
        code, said = project.ask("GET", path)
        assert code == 200, said
        for field in ("name", "role", "session", "branch", "worktree", "program", "pid"):
            assert said[field] == known[field], (path, field)
    assert project.ask("GET", "/agents/developer/why")[1]["evidence"]
    assert project.ask("GET", "/agents/developer/approvals") == (200, {"approvals": []})
    for path in ("/agents/nobody", "/agents/nobody/why", "/agents/developer@other"):
        assert project.ask("GET", path)[1]["error"] == "not_found"


def test_messages_of_an_inbox(project: Project) -> None:
    puppets = Puppets(project.lab)
    puppets.start("fx", "developer")
    project.lab.swarm.send("developer", "look here", subject="parser")
    project.start()
    code, said = project.ask("GET", "/messages?inbox=developer@fx")
    assert (code, said["inbox"]) == (200, "developer@fx")
    (one,) = said["messages"]
    assert (one["content"]["subject"], one["content"]["body"], one["to"]) == ("parser", "look here", "developer@fx")
    assert project.ask("GET", "/messages") == (200, {"inbox": "user", "messages": []})
    assert project.ask("GET", "/messages?inbox=nobody")[0] == 404


def test_the_log_and_the_token_and_the_sockets_are_the_users_alone(project: Project) -> None:
    project.start()
    server = project.root / "server"
    assert server.stat().st_mode & 0o777 == 0o700
    for one in (server / "http", server / "socket", server / "server.log", project.servers / "credentials/api-token"):
        assert one.stat().st_mode & 0o777 == 0o600, one
    token = project.token
    assert project.ask("GET", "/agents", token="wrong" * 8)[0] == 401
    assert project.end() == 0
    for text in ((server / "server.log").read_text(), project.said.decode()):
        assert token not in text
        assert "wrong" * 8 not in text
    assert not (server / "http").exists()
