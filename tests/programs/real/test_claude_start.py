"""Claude Code in a pane: it starts without a dialog, is told who it is and what to do, and does it."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import call, say

if TYPE_CHECKING:
    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


def test_a_fresh_home_starts_without_a_dialog_and_does_its_task(claude: ClaudeLab) -> None:
    claude.role("builder", "You are the builder of bridges, word ANVIL.", model="haiku")
    claude.api.script("paint it green", say("It is green now."))
    claude.begin("claude", "builder", "paint it green")
    claude.shows("builder", "It is green now.")
    asked = claude.api.heard("paint it green")
    assert "word ANVIL" in asked.system
    assert "haiku" in asked.model
    claude.until("builder", "idle")
    tree = claude.one("builder").worktree
    config = claude.config()
    assert {name for name, one in config["projects"].items() if one.get("hasTrustDialogAccepted")} == {str(tree)}
    assert claude.git("status", "--porcelain", cwd=tree) == ""
    settings = claude.run("builder") / ".claude" / "settings.json"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert json.loads(settings.read_text())["permissions"]["defaultMode"] == "default"
    claude.swarm.cleanup(["fx"], force=True)
    assert not any(one.get("hasTrustDialogAccepted") for one in claude.config()["projects"].values())


def test_what_the_program_would_not_accept_is_refused_before_anything_is_made(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", settings={"env": {"A": 1}})
    done = claude.cli("start", "fx", "--roles", "builder", "--agent", "claude")
    assert done.returncode == 2
    assert "settings.env" in done.stderr
    assert not (claude.root / ".worktrees").exists()
    assert not (claude.home / ".claude.json").exists()


def test_the_projects_servers_and_an_unusual_task_open_no_dialog(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.")
    claude.write({".mcp.json": json.dumps({"mcpServers": {"db": {"command": "false"}}})})
    claude.commit("servers")
    claude.begin("claude", "builder", '--help me with {this} "task"\nof two lines ' + "x" * 120_000)
    asked = claude.api.heard("Your task is in the file")
    assert asked.main
    claude.shows("builder", "All done.")
    claude.until("builder", "idle")


def test_what_the_project_allows_is_no_dialog_in_a_pane_but_a_refusal_before_anything_is_made(
    claude: ClaudeLab,
) -> None:
    """The program looks for an entry for the main checkout there, and that is not swarm's to make."""
    claude.write({".claude/settings.json": json.dumps({"permissions": {"allow": ["Bash(npm test)"]}})})
    claude.git("add", "-Af")
    claude.commit("allowed by the project")

    done = claude.cli("start", "fx", "--roles", "developer", "--agent", "claude", "--task", "paint it green")

    assert done.returncode == 5
    assert "settings.json allows tools" in done.stderr
    assert f"start `claude` once in {claude.root}" in done.stderr
    assert not (claude.root / ".worktrees").exists()
    assert not (claude.home / ".claude.json").exists()

    claude.at_home(".claude.json", {"projects": {str(claude.root): {"hasTrustDialogAccepted": True}}})
    claude.begin("claude", "developer", "paint it green")
    claude.shows("developer", "All done.")
    claude.until("developer", "idle")


def test_in_print_mode_what_the_project_allows_is_left_out_and_nobody_is_asked(claude: ClaudeLab) -> None:
    claude.write({".claude/settings.json": json.dumps({"permissions": {"allow": ["Bash(touch *)"]}})})
    claude.git("add", "-Af")
    claude.commit("allowed by the project")
    claude.api.script("paint it green", call("Bash", command="touch green", description="x"), say("Tried."))

    claude.swarm.start("fx", "developer", task="paint it green", program="claude", print_mode=True)

    claude.until("developer", "done")
    claude.shows("developer", "Tried.")
    assert not (claude.one("developer").worktree / "green").exists()
