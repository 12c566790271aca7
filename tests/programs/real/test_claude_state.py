"""What Claude Code is doing, as swarm tells it: from the program's own words."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import call, fail, hold, say
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


def touch(name: str) -> dict[str, str]:
    return {"command": f"touch {name}", "description": "make a file"}


def decided_by(claude: ClaudeLab, agent: str = "builder") -> set[str]:
    return {one.source for one in claude.one(agent).status.evidence if one.decides}


def test_working_then_waiting_for_permission_then_idle_and_refused(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.")
    claude.api.script(
        "open the gate",
        hold("go", call("Bash", **touch("first"))),
        say("It is made."),
        call("Bash", **touch("second")),
    )
    claude.begin("claude", "builder", "open the gate")
    claude.api.heard("open the gate")
    claude.until("builder", "working")
    claude.api.open("go")
    found = claude.until("builder", "waiting")
    wait_for(lambda: "touch first" in claude.one("builder").status.detail, "the command", 60)
    (open_one,) = claude.swarm.approvals()
    assert claude.one("builder").status.detail == f"for permission {open_one.question.id}: Bash(touch first)"
    assert decided_by(claude) == {"program"}
    assert not (found.worktree / "first").exists()
    assert "for permission" in claude.cli("status").stdout
    claude.keys("builder", "Enter")
    claude.shows("builder", "It is made.")
    claude.until("builder", "idle")
    wait_for(lambda: claude.one("builder").status.detail == "It is made.", "its last words", 60)
    assert (found.worktree / "first").exists()
    claude.type("builder", "go on")
    claude.until("builder", "waiting")
    claude.keys("builder", "Escape")  # no hook of the program tells of this
    claude.until("builder", "idle")
    assert not (found.worktree / "second").exists()


def test_it_is_not_idle_before_its_first_prompt_was_put(claude: ClaudeLab) -> None:
    """Its session file says so; a merge after `swarm wait` would find no work."""
    claude.role("builder", "You build.")
    claude.api.script("open the gate", hold("go", say("It is open.")))
    claude.begin("claude", "builder", "open the gate")
    seen: list[str] = []

    def asked() -> bool:
        seen.append(claude.state("builder"))
        return bool(claude.api.requests())

    wait_for(asked, "the first prompt", 150)
    claude.until("builder", "working")
    assert "idle" not in seen
    claude.api.open("go")
    claude.until("builder", "idle")
    claude.shows("builder", "It is open.")


def test_rules_of_the_role_are_held_by_the_program_and_an_error_ends_in_idle(claude: ClaudeLab) -> None:
    rules = {"allow": ["Bash(touch *)"], "deny": ["Bash(touch secret*)"]}
    claude.role("builder", "You build.", permissions=rules)
    claude.api.script(
        "under rules",
        call("Bash", **touch("plain")),
        call("Bash", **touch("secret-one")),
        *(fail(500, "broken on purpose") for _ in range(3)),
    )
    claude.begin("claude", "builder", "work under rules")
    shown = claude.shows("builder", "API Error")
    found = claude.until("builder", "idle")
    assert "Do you want" not in shown
    assert (found.worktree / "plain").exists()
    assert not (found.worktree / "secret-one").exists()
    last = claude.api.requests("under rules")[-1]
    assert "denied by the rule Bash(touch secret*)" in last.text


def test_killed_it_comes_back_with_what_it_knew(claude: ClaudeLab) -> None:
    claude.role("builder", "You are the builder, word ANVIL.")
    claude.api.script("remember the colour", say("The colour is teal."), say("It was teal."))
    claude.begin("claude", "builder", "remember the colour")
    claude.shows("builder", "The colour is teal.")
    found = claude.until("builder", "idle")
    claude.written("The colour is teal.")
    os.kill(found.pid, signal.SIGKILL)
    assert claude.until("builder", "failed").status.detail == "killed by signal 9"
    claude.swarm.resume(["fx"])
    again = claude.until("builder", "idle")
    assert again.pid != found.pid
    claude.type("builder", "which colour was it?")
    claude.shows("builder", "It was teal.")
    asked = claude.api.heard("which colour was it?")
    assert "The colour is teal." in asked.text
    assert "word ANVIL" in asked.system
    assert sum("remember the colour" in text for text in asked.said) == 1  # the task was not given twice


def test_killed_in_its_first_moments_it_begins_again(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.")
    claude.api.script("count the stones", hold("never", say("")), say("Seven stones."))
    claude.begin("claude", "builder", "count the stones")
    claude.api.heard("count the stones")
    first = claude.until("builder", "working")
    os.kill(first.pid, signal.SIGKILL)
    claude.until("builder", "failed")
    for path in (claude.home / ".claude").glob("projects/*/*.jsonl"):  # as when it was killed a little earlier
        path.write_text("".join(one for one in path.read_text().splitlines(True) if '"type":"user"' not in one))
    claude.swarm.resume(["fx"])
    claude.shows("builder", "Seven stones.")
    assert claude.until("builder", "idle").pid != first.pid


def test_two_agents_of_one_role_have_settings_and_conversations_of_their_own(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", permissions={"allow": ["Bash(touch *)"]})
    claude.begin("claude", "builder:2", "say hello")
    for name in ("builder-1", "builder-2"):
        claude.shows(name, "All done.")
        claude.until(name, "idle")
        assert (claude.run(name) / ".claude" / "settings.json").is_file()
    one, two = (claude.one(name).agent.conversation for name in ("builder-1", "builder-2"))
    assert one != two
    trusted = {name for name, entry in claude.config()["projects"].items() if entry.get("hasTrustDialogAccepted")}
    assert trusted == {str(claude.one(name).worktree) for name in ("builder-1", "builder-2")}


@pytest.mark.parametrize(
    ("status", "detail"), [(429, "for its rate limit to pass; then tell it to go on"), (401, "for you to log in")]
)
def test_a_turn_that_ended_on_a_limit_or_a_lost_login_waits_for_a_person(
    claude: ClaudeLab, status: int, detail: str
) -> None:
    claude.role("builder", "You build.")
    claude.api.script("say hello", *(fail(status) for _ in range(3)), say("Here I am again."))
    claude.begin("claude", "builder", "say hello")

    assert claude.until("builder", "waiting").status.detail == detail

    claude.say("builder", "go on")
    claude.shows("builder", "Here I am again.")
    claude.until("builder", "idle")
