"""Tasks by HTTP: the paths of a served agent, and what stays when its server is killed."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_a_task_from_idle_to_completed(served: Served) -> None:
    """TEST-12, API-01 to 05 and 09: the fields of the schemas, no more and no less."""
    served.start()
    status = served.status()
    assert {key: status[key] for key in ("type", "interfaces", "state", "current_task")} == {
        "type": "agent",
        "interfaces": ["statusable", "taskable"],
        "state": "idle",
        "current_task": None,
    }
    assert status["config"]["port"] == served.port
    assert [one["message"] for one in status["log"]][-1] == "ready"

    code, said = served.ask("POST", "/task", {"prompt": "wait", "project": {"name": "app", "prompt": "Work in app."}})
    assert (code, said["status"], sorted(said)) == (201, "queued", ["session_id", "status", "task_id"])
    wait_for(lambda: served.status()["state"] == "working", "the agent at work")
    current = served.status()["current_task"]
    assert (current["id"], current["prompt_preview"]) == (said["task_id"], "wait")
    now = served.until(said["task_id"], "working")
    assert [now[key] for key in ("exit_code", "completed_at", "output", "token_usage")] == [None] * 4
    served.gate.touch()

    over = served.until(said["task_id"], "completed")
    assert (over["exit_code"], over["output"], over["session_id"]) == (
        0,
        "did: Project: app\n\nWork in app.\n\nwait",
        said["session_id"],
    )
    assert sorted(over) == [
        *("completed_at", "duration_seconds", "exit_code", "output", "session_id", "started_at", "state", "task_id"),
        "token_usage",
    ]
    assert isinstance(over["duration_seconds"], int)
    assert over["completed_at"].endswith("Z")
    wait_for(lambda: served.status()["state"] == "idle", "the agent idle again")
    assert served.ask("GET", f"/task/{said['task_id']}?detail=1")[1]["detail"] == "completed"


def test_one_task_at_a_time_and_what_is_not_there(served: Served) -> None:
    served.start()
    task_id = served.submit("wait")
    code, said = served.ask("POST", "/task", {"prompt": "another"})
    assert (code, said["error"], said["current_task"]) == (409, "agent_busy", task_id)
    assert said["message"] == f"Agent is currently processing {task_id}"
    assert len([one for one in served.begun() if one]) <= 1
    for path in ("/task/task-none", "/history/task-none", "/task/task-none/debug", f"/history/{task_id}", "/none"):
        code, said = served.ask("GET", path)
        assert (code, said["error"], sorted(said)) == (404, "not_found", ["details", "error", "message"]), path
    assert served.ask("POST", "/task/task-none/cancel")[1]["message"] == "Task task-none not found"


def test_cancel_answers_when_it_is_over(served: Served) -> None:
    served.start()
    task_id = served.submit("wait")
    wait_for(served.begun, "the program")
    code, said = served.ask("POST", f"/task/{task_id}/cancel")
    assert (code, said["task_id"], said["state"]) == (200, task_id, "cancelled")
    code, said = served.ask("POST", f"/task/{task_id}/cancel")
    assert (code, said["error"], said["final_state"]) == (409, "already_completed", "cancelled")
    assert served.ask("GET", f"/task/{task_id}")[1]["state"] == "cancelled"


def test_a_held_task_goes_on_and_ends_when_its_caller_says_so(served: Served) -> None:
    """API-20 to 22."""
    served.start()
    task_id = served.submit("first", hold=True)
    held = served.until(task_id, "idle")
    assert held["output"] == "did: first"
    assert served.ask("POST", f"/task/{task_id}/continue", {"prompt": "wait"}) == (
        200,
        {"task_id": task_id, "state": "working"},
    )
    code, said = served.ask("POST", f"/task/{task_id}/end")
    assert (code, said["error"]) == (409, "not_idle")
    served.gate.touch()
    assert served.until(task_id, "idle")["session_id"] == held["session_id"]
    code, said = served.ask("POST", f"/task/{task_id}/end")
    assert (code, said) == (200, {"task_id": task_id, "state": "completed", "output": "did: wait"})
    assert served.ask("POST", f"/task/{task_id}/continue", {"prompt": "x"})[1]["error"] == "already_completed"


def test_a_failure_and_a_timeout_say_what_they_are(served: Served) -> None:
    served.start()
    failed = served.until(served.submit("fail"), "failed")
    assert (failed["exit_code"], failed["error"]["type"], failed["output"]) == (3, "claude_error", "did: fail")
    wait_for(lambda: any(one["level"] == "error" for one in served.status()["log"]), "the entry of the log")
    wait_for(lambda: served.status()["state"] == "idle", "the agent idle again")
    late = served.until(served.submit("wait", timeout_seconds=0.5), "failed")
    assert late["error"]["type"] == "timeout"


def test_the_same_request_again_makes_no_second_task(served: Served) -> None:
    served.start()
    one = served.ask("POST", "/task", {"prompt": "once"}, Idempotency_Key="k1")
    again = served.ask("POST", "/task", {"prompt": "once"}, Idempotency_Key="k1")
    assert (one[0], again[0], again[1]["task_id"]) == (201, 201, one[1]["task_id"])
    code, said = served.ask("POST", "/task", {"prompt": "other"}, Idempotency_Key="k1")
    assert (code, said["error"]) == (409, "idempotency_conflict")
    served.until(one[1]["task_id"], "completed")
    assert len(served.begun()) == 1


def test_the_history_has_pages_and_everything_of_a_task(served: Served) -> None:
    """API-17 to 19."""
    served.start()
    ids = []
    for number in range(3):
        ids.append(served.submit(f"number {number}"))
        served.until(ids[-1], "completed")
    code, said = served.ask("GET", "/history?page=1&limit=2")
    assert (code, said["total"], [one["task_id"] for one in said["tasks"]]) == (200, 3, [ids[2], ids[1]])
    assert [one["task_id"] for one in served.ask("GET", "/history?page=2&limit=2")[1]["tasks"]] == [ids[0]]
    assert [served.ask("GET", f"/history?{query}")[0] for query in ("limit=101", "limit=0", "page=0")] == [400] * 3
    details = served.ask("GET", f"/history/{ids[0]}")[1]
    assert (details["prompts"], details["logs"][0]["stdout"]) == (["number 0"], "did: number 0")
    assert details["events"][0]["kind"] == "accepted"
    debug = served.ask("GET", f"/task/{ids[0]}/debug")[1]
    assert (debug["stdout"], debug["stderr"], len(debug["runs"])) == ("did: number 0", "", 1)


def test_a_killed_server_loses_nothing_and_its_next_one_finds_the_task(served: Served) -> None:
    """V1 in short: the same process goes on, once, and is nowhere said to have failed."""
    served.start()
    task_id = served.submit("wait")
    wait_for(served.begun, "the program")
    began = served.begun()
    assert served.end(signal.SIGKILL) == -signal.SIGKILL
    served.start()
    assert served.status()["current_task"]["id"] == task_id
    assert served.ask("POST", "/task", {"prompt": "x"})[1]["error"] == "agent_busy"
    served.gate.touch()
    assert served.until(task_id, "completed")["output"] == "did: wait"
    assert served.begun() == began
    assert any(f"{task_id} was found again" in one["message"] for one in served.status()["log"])


def test_shutdown_refuses_drains_or_forces(served: Served) -> None:
    """API-13, API-14, C-29."""
    served.start()
    task_id = served.submit("wait")
    wait_for(served.begun, "the program")
    code, said = served.ask("POST", "/shutdown")
    assert (code, said["error"], said["task_id"]) == (409, "task_in_progress", task_id)
    code, said = served.ask("POST", "/shutdown", {"drain": True, "timeout_seconds": 60})
    assert (code, said) == (202, {"message": "Shutdown initiated", "drain_timeout": 60})
    assert served.ask("POST", "/task", {"prompt": "x"})[1]["error"] == "not_ready"
    served.gate.touch()
    assert served.ended() == 0
    assert served.lab.swarm.tasks.get(task_id).state == "completed"

    served.gate.unlink()
    served.start()
    task_id = served.submit("wait")
    assert served.ask("POST", "/shutdown", {"force": True})[0] == 202
    assert served.ended() == 0
    assert served.lab.swarm.tasks.get(task_id).state == "cancelled"


def test_a_signal_drains_and_a_second_one_leaves_the_task_at_work(served: Served) -> None:
    served.start()
    task_id = served.submit("wait")
    wait_for(served.begun, "the program")
    assert served.process is not None
    served.process.send_signal(signal.SIGTERM)
    wait_for(lambda: "shutting down" in served.status()["log"][-1]["message"], "the beginning of the end")
    assert served.end(signal.SIGTERM) == 0
    assert served.lab.swarm.tasks.get(task_id).shown == "working"
    served.gate.touch()
    assert served.lab.swarm.tasks.wait(task_id, 60).state == "completed"


def test_it_answers_while_it_checks_its_program_and_ends_when_that_is_wrong(served: Served) -> None:
    """API-08, API-25."""
    gate = served.lab.root.parent / "version"
    served.lab.program("claude", f'#!/bin/sh\nwhile [ ! -e "{gate}" ]; do sleep 0.02; done\nexit 9\n')
    process = served.begin("--agent", "claude")
    wait_for(lambda: served.record is not None or process.poll() is not None, "the server", 60)
    assert served.record is not None, process.communicate()[1]
    served.port = served.record.port
    assert served.status()["state"] == "starting"
    code, said = served.ask("POST", "/task", {"prompt": "x"})
    assert (code, said["error"]) == (503, "not_ready")
    gate.touch()
    assert served.ended() == 5
    assert b"--version failed with exit status 9" in served.said
    assert b"Traceback" not in served.said


def test_a_second_server_of_an_agent_says_where_the_first_one_is(served: Served) -> None:
    served.start()
    done = served.lab.cli("agent", "serve", "--name", "rev", "--port", "0", "--agent-cmd", "cat")
    assert done.returncode == 3
    assert f"http://127.0.0.1:{served.port}" in done.stderr


def test_task_of_the_command_line_asks_a_served_agent(served: Served) -> None:
    served.start()
    url = f"http://127.0.0.1:{served.port}"
    done = served.lab.cli("task", "hello", "--agent-url", url)
    assert (done.returncode, done.stdout) == (0, "did: hello\n"), done.stderr
    failed = served.lab.cli("--json", "task", "fail", "--agent-url", url)
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["data"]["task"]["error"]["type"] == "claude_error"
    for bad in ("http://127.0.0.1:1", "http://example.org:9000", "http://127.0.0.1:9@evil", "file:///etc/passwd"):
        refused = served.lab.cli("task", "x", "--agent-url", bad)
        assert refused.returncode in (2, 5), (bad, refused.stderr)
        assert "Traceback" not in refused.stderr
