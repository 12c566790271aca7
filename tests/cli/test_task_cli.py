"""``swarm task``: what it says, its exit status, and what it gives to programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_a_task_is_done_and_its_result_printed(cli: Cli) -> None:
    said = cli.ok("task", "echo hello; echo 'red \x1b[31m'", "--agent", "shell")

    assert said.out == "hello\nred \\x1b[31m\n"
    assert "accepted task-" in said.err


def test_a_failure_is_told_with_the_exit_status(cli: Cli) -> None:
    said = cli("task", "echo half; exit 3", "--agent", "shell")
    assert (said.code, said.out) == (1, "half\n")
    assert "failed: exit status 3" in said.err

    told = cli("task", "exit 3", "--agent", "shell", "--json").json()
    assert (told["status"], told["errors"][0]["code"]) == ("error", "TASK_FAILED")
    assert told["data"]["task"]["failure"] == {
        "type": "program_error",
        "message": "exit status 3",
        "retryable": False,
    }


def test_a_held_task_goes_on_and_ends(cli: Cli) -> None:
    task = cli.ok("task", "demo: say one", "--agent", "demo", "--hold", "--id", "mine", "--json").data()["task"]
    assert (task["id"], task["state"], task["output"]) == ("mine", "idle", "one")

    assert "mine" in cli.ok("task", "list").out
    assert cli.ok("task", "continue", "mine", "demo: say two").out == "two\n"
    assert cli.ok("task", "end", "mine", "--json").data()["task"]["state"] == "completed"
    assert "no unfinished tasks" in cli.ok("task", "list").err
    assert "mine" in cli.ok("task", "list", "--all").out
    assert "mine" in cli.ok("task", "history").out
    shown = cli.ok("task", "show", "mine").out
    assert "mine is completed" in shown
    assert "turn 2, resumed: exited, exit status 0" in shown
    kinds = [one["kind"] for one in cli.ok("task", "events", "mine", "--json").data()["events"]]
    assert kinds == [
        *("accepted", "starting", "started", "held", "continued", "starting", "started", "held", "completed"),
    ]
    assert '"text": "two"' in cli.ok("task", "output", "mine").out


def test_a_detached_task_is_cancelled(cli: Cli) -> None:
    said = cli.ok("task", "sleep 1000", "--agent", "shell", "--detach", "--id", "mine")
    assert said.out == "mine is working\n"
    assert "swarm task wait mine" in said.err

    assert cli("task", "wait", "mine", "--timeout", "0.1").code == 75
    assert cli.ok("task", "cancel", "mine").out == "mine is cancelled\n"
    assert cli("task", "cancel", "mine").code == 3
    assert cli("task", "show", "nope").code == 6


def test_a_text_comes_from_a_file_and_from_stdin(cli: Cli) -> None:
    cli.lab.write({"goal.sh": "echo from a file\n"})

    assert cli.ok("task", "@goal.sh", "--agent", "shell").out == "from a file\n"
    assert cli("task", "@nothing", "--agent", "shell").code == 2
    assert cli("task", "", "--agent", "shell").code == 2
    whole = cli("task", "x", "--agent", "shell", "--agent-cmd", "cat", "--json").json()
    assert json.dumps(whole["errors"]).count("give one of them") == 1
