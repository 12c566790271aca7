"""A role that changes while its agents work."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.testing.panes import QUICK
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm import SwarmError
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def team(panes: PaneLab) -> PaneLab:
    panes.write({"roles/tester/CLAUDE.md": "# Tester\n\nFirst.\n"})
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("tester,developer", task=QUICK)
    panes.all_until("idle")
    return panes


def change(lab: PaneLab, text: str) -> None:
    lab.write({"roles/tester/CLAUDE.md": text})


def test_the_new_text_is_placed_and_the_agent_told_once(team: PaneLab) -> None:
    worktrees = team.swarm.worktrees
    problems: list[SwarmError] = []
    assert worktrees.update_changed_roles(problems=problems) == ()
    change(team, "# Tester\n\nSecond.\n")

    assert [one.agent for one in worktrees.update_changed_roles(problems=problems)] == ["tester"]
    assert worktrees.update_changed_roles(problems=problems) == ()

    assert problems == []
    assert "Second." in (worktrees.path("tester") / "CLAUDE.local.md").read_text()
    (told,) = team.swarm.messages.history("tester")
    assert (told.message.subject, told.message.type) == ("your instructions changed", "role")
    assert "CLAUDE.local.md" in told.message.body
    assert team.swarm.messages.history("developer") == ()


def test_what_an_agent_edited_stays_and_hinders_no_other(team: PaneLab) -> None:
    team.swarm.fork("tester", "second")
    file = team.swarm.worktrees.path("tester") / "CLAUDE.local.md"
    file.write_text("mine\n")
    change(team, "# Tester\n\nSecond.\n")
    problems: list[SwarmError] = []

    updated = team.swarm.worktrees.update_changed_roles(problems=problems)

    assert [one.agent for one in updated] == ["second"]
    assert file.read_text() == "mine\n"
    assert len(problems) == 1
    assert team.swarm.messages.history("tester") == ()


def test_the_command_goes_on_until_ctrl_c(team: PaneLab) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "swarm", "worktree", "update-role", "--watch"],
        cwd=team.root,
        env=team.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout is not None
        try:
            change(team, "# Tester\n\nSecond.\n")
            assert watching.stdout.readline() == "updated the instructions (tester) of tester@fx\n"
            (team.root / "roles/tester/CLAUDE.md").unlink()
            change(team, "# Tester\n\nThird.\n")
            assert watching.stdout.readline() == "updated the instructions (tester) of tester@fx\n"
        finally:
            watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130
    wait_for(lambda: len(team.swarm.messages.history("tester")) == 2, "both messages")


@pytest.mark.parametrize("args", [(), ("--watch", "--force"), ("--watch", "nobody")])
def test_what_is_refused(team: PaneLab, args: tuple[str, ...]) -> None:
    done = team.cli("worktree", "update-role", *args)

    assert (done.returncode, done.stderr.startswith("error: ")) == (6 if "nobody" in args else 2, True), done.stderr
