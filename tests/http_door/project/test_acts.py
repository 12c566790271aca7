"""What is done by HTTP is done as whoever asks: agents, messages, tasks and queues."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.terminal import wait_for
from tests.support.puppet import Puppets

if TYPE_CHECKING:
    from tests.http_door.project.conftest import Project

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
#: Makes requests with the token that lies in the swarm directory, by TCP and by the socket there.
CLIENT = """
import http.client, json, os, socket, sys
asked = json.load(sys.stdin)
for private in (False, True):
    for method, path, body in asked["requests"]:
        one = http.client.HTTPConnection("127.0.0.1", asked["port"], timeout=60)
        if private:
            one.sock = socket.socket(socket.AF_UNIX)
            os.chdir(asked["root"] + "/server")
            one.sock.connect("http")
        token = asked["token"]
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json", **asked["headers"]}
        one.request(method, path, body and json.dumps(body), headers)
        answer = one.getresponse()
        print(json.dumps([answer.status, json.loads(answer.read())]), flush=True)
"""


def by_agent(
    project: Project, puppets: Puppets, *requests: tuple[str, str, Any], **headers: str
) -> list[tuple[int, dict[str, Any]]]:
    """Make requests below an agent, by both doors; return the answers of the first, then those of the second."""
    made = puppets.run("developer@fx", [sys.executable, "-c", CLIENT])
    told = {
        "port": project.port,
        "root": str(project.root),
        "token": project.token,
        "requests": requests,
        "headers": headers,
    }
    made.stdin.write(json.dumps(told).encode())
    made.stdin.close()
    out, err = made.stdout.read().decode(), made.stderr.read().decode()
    assert made.wait() == 0, err
    made.close()
    return [tuple(json.loads(line)) for line in out.splitlines()]


# --- agents and messages --------------------------------------------------------------------------


def test_an_agent_is_told_stopped_and_started_again(project: Project) -> None:
    puppets = Puppets(project.lab)
    puppets.start("fx", "developer")
    project.start()
    code, said = project.ask("POST", "/agents/developer/messages", {"body": "stop soon", "subject": "please"})
    assert code == 201, said
    (one,) = project.lab.swarm.messages.inbox("developer@fx")
    assert (one.message.id, one.message.body, one.message.subject) == (said["sent"][0]["id"], "stop soon", "please")
    assert one.message.metadata["via"] == "script", "nothing shows that a person sent it"
    assert project.ask("POST", "/agents/developer@fx/stop")[1]["stopped"] == ["developer@fx"]
    wait_for(lambda: project.ask("GET", "/agents/developer")[1]["state"] == "stopped", "it stopped")
    assert project.ask("POST", "/agents/developer@fx/resume")[1]["started"] == ["developer@fx"]
    wait_for(lambda: project.ask("GET", "/agents/developer")[1]["state"] != "stopped", "it runs")
    assert project.ask("POST", "/agents/nobody/stop")[0] == 404
    assert project.ask("POST", "/agents/developer@other/resume")[0] == 404
    assert project.ask("POST", "/agents/nobody/messages", {"body": "x"})[0] == 404


def test_an_agent_with_the_token_is_that_agent_at_both_doors(project: Project) -> None:
    """S6: it sends as itself, and changes nothing of others."""
    puppets = Puppets(project.lab)
    puppets.start("fx", "developer,reviewer")
    project.configure()
    project.start()
    task_id = project.submit("first", hold=True)
    project.until(task_id, "idle")
    answers = by_agent(
        project,
        puppets,
        ("POST", "/agents/reviewer/stop", None),
        ("POST", f"/tasks/{task_id}/end", None),
        ("POST", f"/tasks/{task_id}/continue", {"prompt": "x"}),
        ("POST", f"/tasks/{task_id}/cancel", None),
        ("POST", "/shutdown", None),
        ("POST", "/codes", None),
        ("POST", "/browsers", {"code": "x"}),
    )
    assert [(code, said["error"]) for code, said in answers] == [(403, "forbidden")] * 14
    ((code, _), _) = by_agent(project, puppets, ("POST", "/messages", {"to": ["reviewer", "user"], "body": "from me"}))
    assert code == 201
    told = project.lab.swarm.messages.inbox("reviewer@fx")
    assert [one.message.sender for one in told] == ["developer@fx"] * 2
    assert project.ask("GET", "/status")[0] == 200


# --- tasks ----------------------------------------------------------------------------------------


def test_a_task_is_done_by_the_agent_of_a_file_and_is_told_in_full(project: Project) -> None:
    project.configure()
    project.start()
    code, said = project.ask("POST", "/tasks", {"prompt": "one", "agent": "rev"}, Idempotency_Key="mine")
    assert (code, said["status"]) == (201, "queued")
    again = project.ask("POST", "/tasks", {"prompt": "one", "agent": "rev"}, Idempotency_Key="mine")
    assert again[1]["task_id"] == said["task_id"]
    other = project.ask("POST", "/tasks", {"prompt": "two", "agent": "rev"}, Idempotency_Key="mine")
    assert (other[0], other[1]["error"]) == (409, "idempotency_conflict")
    done = project.until(said["task_id"], "completed")
    assert (done["output"], done["agent"], done["exit_code"]) == ("did: one", "rev", 0)
    _, told = project.ask("GET", f"/tasks/{said['task_id']}/events")
    assert [one["kind"] for one in told["events"]][0::2] == ["accepted", "started"]
    assert told["events"][-1]["kind"] == "completed"
    _, out = project.ask("GET", f"/tasks/{said['task_id']}/output")
    assert out["runs"][0]["stdout"] == "did: one"
    assert project.ask("GET", "/history")[1]["tasks"][0]["task_id"] == said["task_id"]
    assert project.ask("GET", "/tasks")[1]["tasks"] == []
    assert len(project.ask("GET", "/tasks?everything=1&agent=rev")[1]["tasks"]) == 1
    assert project.begun() == [["one", project.begun()[0][1]]]


def test_a_held_task_goes_on_and_ends_and_another_is_cancelled(project: Project) -> None:
    project.configure()
    project.start()
    task_id = project.submit("one", hold=True)
    project.until(task_id, "idle")
    assert project.ask("POST", f"/tasks/{task_id}/continue", {"prompt": "two"})[1]["state"] in ("queued", "working")
    project.until(task_id, "idle")
    assert project.ask("POST", f"/tasks/{task_id}/end")[1]["output"] == "did: two"
    code, said = project.ask("POST", f"/tasks/{task_id}/end")
    assert (code, said["error"]) == (409, "already_completed")
    working = project.submit("wait")
    wait_for(lambda: len(project.begun()) == 3, "the program")
    assert project.ask("POST", f"/tasks/{working}/cancel")[1]["state"] == "cancelled"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"agent": "nobody"}, "not_found"),
        ({"agent": "../x"}, "validation_error"),
        ({"agent": "rev", "program": "demo"}, "validation_error"),
        ({"program": "nothing-of-this-name"}, "validation_error"),
        ({"role": "nobody-knows"}, "not_found"),
        ({"worktree": True, "agent": None, "program": "demo"}, "validation_error"),
        ({"command": "touch x"}, "validation_error"),
        ({"env": {"LD_PRELOAD": "x"}}, "validation_error"),
        ({"tries": 0}, "validation_error"),
    ],
)
def test_a_task_that_cannot_be_leaves_nothing(project: Project, asked: dict[str, Any], error: str) -> None:
    project.configure()
    project.start()
    code, said = project.ask("POST", "/tasks", {"prompt": "x", **asked})
    assert (400 <= code < 500, said["error"]) == (True, error), said
    assert project.lab.swarm.tasks.list(finished=True) == ()


def test_the_box_of_an_agent_is_not_for_a_file_in_the_repository_to_take_away(project: Project) -> None:
    project.configure()
    project.start()
    inside = project.lab.root / "agents-of-mine"
    (project.servers / "agents").rename(inside)
    (project.servers / "agents").symlink_to(inside)
    code, said = project.ask("POST", "/tasks", {"prompt": "x", "agent": "rev"})
    assert (code, said["details"]["code"]) == (400, "CONFIG"), said
    assert project.lab.swarm.tasks.list(finished=True) == ()


def test_a_killed_server_ends_no_task_and_the_next_one_finds_it(project: Project) -> None:
    """Figure 1 in short: the same process goes on, and is found again by the first look."""
    project.configure()
    project.start()
    task_id = project.submit("wait")
    wait_for(project.begun, "the program")
    project.end(signal.SIGKILL)
    project.start()
    code, said = project.ask("GET", f"/tasks/{task_id}")
    assert (code, said["state"]) == (200, "working")
    found = [one["message"] for one in project.ask("GET", "/status")[1]["log"]]
    assert f"{task_id} was found again: working" in found
    project.gate.touch()
    assert project.until(task_id, "completed")["output"] == "did: wait"
    assert len(project.begun()) == 1


# --- queues ---------------------------------------------------------------------------------------


def test_workers_pull_from_a_queue_in_order_and_once(project: Project) -> None:
    """EXT-03."""
    project.start()
    code, first = project.ask("POST", "/queues/work/tasks", {"text": "first", "id": "one"})
    assert (code, first) == (201, {"queue": "work", "id": "one", "duplicate": False})
    assert project.ask("POST", "/queues/work/tasks", {"text": "first", "id": "one"})[1]["duplicate"]
    project.ask("POST", "/queues/work/tasks", {"text": "second", "id": "two", "after": ["one"]})
    assert project.ask("GET", "/queues")[1]["queues"] == [{"queue": "work", "waiting": 2, "taken": 0, "given_up": 0}]
    _, taken = project.ask("POST", "/queues/work/take", {"limit": 5})
    assert [one["id"] for one in taken["tasks"]] == ["one"], "the other one waits for it"
    _, none = project.ask("POST", "/queues/work/take", {"wait_seconds": 0.2})
    assert (none["claim"], none["tasks"]) == (None, [])
    assert project.ask("POST", "/queues/work/extend", {"ids": ["one"], "lease_seconds": 60})[1]["ids"] == ["one"]
    assert project.ask("POST", "/queues/work/done", {"ids": ["one"], "result": "fine"})[1]["ids"] == ["one"]
    _, taken = project.ask("POST", "/queues/work/take", {"wait_seconds": 60})
    assert [one["text"] for one in taken["tasks"]] == ["second"]
    assert project.ask("POST", "/queues/work/back", {"ids": ["two"], "reason": "later"})[1]["ids"] == ["two"]
    project.ask("POST", "/queues/work/take", {})
    assert project.ask("POST", "/queues/work/fail", {"ids": ["two"], "reason": "no compiler"})[1]["ids"] == ["two"]
    _, all_ = project.ask("GET", "/queues/work?everything=1")
    assert {one["id"]: one["state"] for one in all_["tasks"]} == {"one": "done", "two": "given up"}
    for path, body in (("take", {}), ("done", {"ids": ["x"]})):
        assert project.ask("POST", f"/queues/none/{path}", body)[0] == 404


def test_what_was_pulled_stays_with_its_worker_when_the_server_is_killed(project: Project) -> None:
    project.start()
    project.ask("POST", "/queues/work/tasks", {"text": "once", "id": "one"})
    assert project.ask("POST", "/queues/work/take", {})[1]["tasks"][0]["id"] == "one"
    project.end(signal.SIGKILL)
    project.start()
    assert project.ask("POST", "/queues/work/take", {})[1]["tasks"] == []
    assert project.ask("POST", "/queues/work/done", {"ids": ["one"]})[1]["ids"] == ["one"]
