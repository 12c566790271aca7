"""``swarm approvals``, ``approve``, ``deny`` as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.approvals.values import Question
from swarm.kit.errors import UsageProblem
from swarm.testing.terminal import wait_for, without_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration

HOSTILE = "touch x\n\x1b[2Jrm -rf /"


@pytest.fixture
def asking(cli: Cli, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Give a process that asks for an agent and waits."""
    cli.ok("worktree", "create", "fx", "--roles", "developer")
    process = subprocess.Popen(
        [sys.executable, "-m", "swarm", "permission-request", "--agent", "developer@fx"],
        cwd=cli.lab.root,
        env=cli.lab.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(
        json.dumps({"tool_name": "Bash", "tool_input": {"command": getattr(request, "param", HOSTILE)}})
    )
    process.stdin.close()
    wait_for(lambda: cli("approvals", "--json").data()["approvals"], "the question", 60)
    yield process
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def test_a_question_is_shown_harmlessly_and_answered(cli: Cli, asking: subprocess.Popen[str]) -> None:
    said = cli.ok("approvals")
    name = cli.ok("approvals", "--json").data()["approvals"][0]["id"]

    assert name in said.out
    assert "developer@fx" in said.out
    assert "\x1b" not in said.out
    assert f"swarm approve {name}" in said.err
    done = cli.typed("deny", name, "--reason", "not here")
    assert "denied developer@fx: Bash(touch x" in done.out
    assert asking.stdout is not None
    assert json.loads(asking.stdout.read())["hookSpecificOutput"]["decision"]["message"] == "not here"
    assert "no agent waits" in cli.ok("approvals").err
    assert "not here" in cli.ok("approvals", "--all").out


def test_an_answered_question_is_refused(cli: Cli, asking: subprocess.Popen[str]) -> None:
    name = cli.ok("approvals", "--json").data()["approvals"][0]["id"]
    cli.typed("approve", name)
    asking.wait(60)

    said = cli.typed("approve", name, "--json")

    assert said.code == 3
    assert said.json()["errors"][0]["code"] == "ALREADY_ANSWERED"


@pytest.mark.parametrize("asking", ["touch x"], indirect=True)
def test_what_was_allowed_for_always_is_shown_and_taken_back(cli: Cli, asking: subprocess.Popen[str]) -> None:
    name = cli.ok("approvals", "--json").data()["approvals"][0]["id"]

    wrong = cli.typed("approve", name, "--rule", "Bash(ls *)")
    assert (wrong.code, "does not match" in wrong.err) == (2, True)

    said = cli.typed("approve", name, "--rule", "Bash(touch *)")

    assert "Bash(touch *) is not asked again" in said.out
    assert f"swarm revoke {name}" in said.err
    asking.wait(60)
    assert "for always Bash(touch *)" in cli.ok("approvals", "--standing").out
    assert "is asked again from now on" in cli.typed("revoke", name, "--reason", "too much").out
    assert "no standing answers" in cli.ok("approvals", "--standing").err
    assert "revoked by user:" in cli.ok("approvals", "--all").out
    assert cli("approvals", "--standing", "--all").code == 2


def test_a_record_that_cannot_be_read_is_a_warning(cli: Cli, asking: subprocess.Popen[str]) -> None:
    (cli.lab.root / ".swarm/approvals/zzzzzz.question.json").write_text('{"schema": 99}')

    said = cli.ok("approvals")
    data = cli.ok("approvals", "--json").data()

    assert "developer@fx" in said.out
    assert "zzzzzz.question.json" in said.err
    assert [one["code"] for one in data["problems"]] == ["RECORD"]


def test_a_grant_is_made_shown_and_revoked(cli: Cli) -> None:
    cli.ok("worktree", "create", "fx", "--roles", "developer")
    refused = without_terminal(lambda: cli("approvals", "grant", "bridge", "--json"))
    assert (refused.code, refused.json()["errors"][0]["code"]) == (4, "NOT_A_PERSON")

    made = cli.typed("approvals", "grant", "bridge")

    assert made.code == 0
    assert made.out.startswith("bridge:")
    assert "swarm approvals grant bridge --revoke" in made.err
    assert "bridge" in cli.ok("approvals", "grants").out
    assert cli.ok("status", "--json").data()["grants"] == ["bridge"]
    assert "may answer for you: bridge" in cli.ok("status").err
    assert cli.typed("approvals", "grant", "bridge").code == 3
    assert "revoked bridge" in cli.typed("approvals", "grant", "bridge", "--revoke").out
    assert cli.typed("approvals", "grant", "bridge", "--revoke").code in (3, 6)
    assert "no program has a grant" in cli.ok("approvals", "grants").err
    assert cli.ok("approvals", "list", "--json").data() == cli.ok("approvals", "--json").data()


def test_a_question_that_is_not_there(cli: Cli) -> None:
    cli.ok("worktree", "create", "fx", "--roles", "developer")

    said = cli.typed("deny", "nothing")

    assert said.code == 6
    assert "swarm approvals" in said.err


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "9" * 400])
def test_a_wait_without_an_end_is_refused(cli: Cli, wait: str) -> None:
    cli.ok("worktree", "create", "fx", "--roles", "developer")

    said = cli("permission-request", "--agent", "developer@fx", f"--wait={wait}")

    assert said.code == 2
    assert "--wait" in said.err
    question = Question("", "fx", "developer", "Bash", {"command": "x"})
    with pytest.raises(UsageProblem, match="cannot wait nan"):
        cli.lab.swarm.approvals.ask(question, timeout=float("nan"))
