"""Claude Code in print mode: it does its task without a dialog and ends; rules hold, messages reach its last turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import call, hold, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_others import counted

if TYPE_CHECKING:
    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
LONG = 90.0


def test_it_does_its_task_under_its_rules_hears_its_messages_and_ends(claude: ClaudeLab) -> None:
    rules = {"allow": ["Bash(touch *)"], "deny": ["Bash(touch secret*)"]}
    claude.role("builder", "You are the builder of bridges, word ANVIL.", model="haiku", permissions=rules)
    claude.api.script(
        "paint it green",
        hold("go", call("Bash", command="env sh -c 'touch secret'", description="x")),
        call("Bash", command="touch plain", description="x"),
        call("Bash", command="mkdir asked", description="x"),
        say("Green it is."),
        say("Heard it."),
    )
    claude.swarm.start("fx", "builder", task="- paint it green", program="claude", print_mode=True)
    asked = claude.api.heard("- paint it green")
    assert "word ANVIL" in asked.system
    assert "haiku" in asked.model
    working = claude.until("builder", "working")
    assert "in print mode" in next(one.text for one in working.status.evidence if one.decides)

    (sent,) = claude.swarm.send("builder@fx", "and well")
    assert sent.note == ""
    claude.api.open("go")

    done = claude.until("builder", "done")
    claude.shows("builder", "Heard it.")
    wait_for(lambda: claude.swarm.messages.get(sent.id)[0].stored.state == "acked", "the receipt", LONG)
    assert "and well" in claude.api.requests()[-1].text
    assert (done.worktree / "plain").exists()
    assert not (done.worktree / "secret").exists()
    assert not (done.worktree / "asked").exists()
    assert "denied by the rule Bash(touch secret*)" in claude.api.requests()[-1].text
    wait_for(lambda: counted(claude) == claude.api.counted(), "the same count on both sides", LONG)
    wait_for(
        lambda: any("is done" in one.message.subject for one in claude.swarm.messages.inbox("user")), "the notice", LONG
    )


def test_a_stopped_one_goes_on_and_a_restart_does_it_anew(claude: ClaudeLab) -> None:
    claude.role("builder", "You are the builder of bridges, word ANVIL.", print=True)
    claude.api.script("paint it green", hold("never", say("Not heard.")), say("Gone on."), say("Once more."))
    claude.begin("claude", "builder", "paint it green")
    claude.api.heard("paint it green")
    claude.written("paint it green")
    claude.swarm.stop(["fx"])

    claude.swarm.resume(["fx"])

    claude.until("builder", "done")
    claude.shows("builder", "Gone on.")
    last = claude.api.requests()[-1]
    assert "Go on with it" in last.text
    assert "paint it green" in last.text
    assert "word ANVIL" in last.system

    claude.swarm.restart("builder", "fx")

    claude.shows("builder", "Once more.")
    claude.until("builder", "done")
    assert "Go on with it" not in claude.api.requests()[-1].text
