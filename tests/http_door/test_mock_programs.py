"""A served agent with a program of the tests in the place of Claude Code: what it answers is what callers get.

The answers are those of the API's first description, in the form in which Claude Code really gives them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from swarm.testing.terminal import wait_for
from tests.http_door.conftest import Served  # noqa: TC001  # the type of the fixture

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
SUCCESS = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "session_id": "0a6ca2ae-3f2b-4b64-9d5e-000000000001",
    "result": "I've successfully completed the task. The bug was in line 42.",
    "usage": {"input_tokens": 1000, "output_tokens": 500},
}
ERROR = SUCCESS | {
    "is_error": True,
    "api_error_status": 400,
    "result": "The model is not known.",
    "usage": {"input_tokens": 0, "output_tokens": 0},
}


def mock(served: Served, said: dict[str, Any] | None, *, slow: bool = False, status: int = 0) -> dict[str, str]:
    """Make a program; return the environment in which it is Claude Code.

    Args:
        said: its last line; None: it is killed before it says anything.
        slow: it ends only when the test allows it.
    """
    wait = f'while [ ! -e "{served.gate}" ]; do sleep 0.02; done\n' if slow else ""
    last = f"cat <<'END'\n{json.dumps(said)}\nEND\nexit {status}\n" if said is not None else "kill -9 $$\n"
    text = f'#!/bin/sh\ncase "$*" in *--version*) echo "2.1.328 (Claude Code)"; exit 0;; esac\n{wait}{last}'
    program = served.lab.program("mock-claude", text)
    return {"CLAUDE_BIN": str(program)}


def test_the_answer_of_a_fast_program(served: Served) -> None:
    """TEST-06, ENV-08: the expected task of the fixtures."""
    served.start("--agent", "claude", env=mock(served, SUCCESS))
    assert served.status()["config"]["program"] == "claude"
    done = served.until(served.submit("fix it"), "completed", "failed")
    assert {key: done[key] for key in ("state", "exit_code", "output", "token_usage")} == {
        "state": "completed",
        "exit_code": 0,
        "output": SUCCESS["result"],
        "token_usage": {"input": 1000, "output": 500},
    }


def test_a_slow_program_and_its_timeout(served: Served) -> None:
    served.start("--agent", "claude", env=mock(served, SUCCESS, slow=True))
    task_id = served.submit("fix it")
    wait_for(lambda: served.ask("GET", f"/task/{task_id}")[1]["state"] == "working", "the task at work")
    served.gate.touch()
    assert served.until(task_id, "completed")["output"] == SUCCESS["result"]
    served.gate.unlink()
    late = served.until(served.submit("fix it", timeout_seconds=0.5), "failed")
    assert late["error"]["type"] == "timeout"
    assert late["completed_at"] is not None


def test_an_error_of_the_model_is_no_success_whatever_the_exit_status_says(served: Served) -> None:
    served.start("--agent", "claude", env=mock(served, ERROR))
    failed = served.until(served.submit("fix it"), "failed", "completed")
    assert (failed["state"], failed["error"]["type"]) == ("failed", "claude_error")


def test_a_program_that_is_killed_says_nothing(served: Served) -> None:
    served.start("--agent", "claude", env=mock(served, None))
    failed = served.until(served.submit("fix it"), "failed", "completed")
    assert (failed["state"], failed["error"]["type"]) == ("failed", "claude_error")
    assert failed["output"] is None
