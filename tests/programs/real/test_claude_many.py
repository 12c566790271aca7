"""Many messages, many agents, and the reviewer's three answers, with a real Claude Code.

``SWARM_AGENT_DELIVERIES=100`` sends that many messages instead of a few.
"""

from __future__ import annotations

import os
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import call, hold, say
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm import Swarm
    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]
MANY = int(os.environ.get("SWARM_AGENT_DELIVERIES", "4"))
LONG = 150.0


def _until(swarm: Swarm, message_id: str, *states: str) -> None:
    wait_for(lambda: swarm.messages.get(message_id)[0].stored.state in states, f"{message_id} in {states}", LONG)


def _each_once_in_order(claude: ClaudeLab, words: list[str]) -> None:
    """The conversation as the model was last told it holds every message once, in the order they were sent."""
    last = max(claude.api.requests("begin here"), key=lambda request: len(request.said))
    places = [[place for place, text in enumerate(last.said) if word in text] for word in words]
    assert [len(found) for found in places] == [1] * len(words), list(zip(words, places, strict=True))
    assert places == sorted(places)


def test_every_message_reaches_an_idle_agent_once_and_in_order(
    claude: ClaudeLab, capsys: pytest.CaptureFixture[str]
) -> None:
    claude.role("builder", "You build.")
    swarm = claude.begin("claude", "builder", "begin here")
    claude.shows("builder", "All done.")
    claude.until("builder", "idle")
    words, took = [f"brick {number};" for number in range(MANY)], []

    for word in words:
        claude.until("builder", "idle")
        began = time.monotonic()
        (sent,) = swarm.send("builder@fx", word)
        claude.api.heard(word, LONG)
        took.append(time.monotonic() - began)
        _until(swarm, sent.id, "acked")

    _each_once_in_order(claude, words)
    with capsys.disabled():
        said = f"send to model {median(took) * 1000:.0f} ms median, {max(took) * 1000:.0f} ms worst"
        sys.stdout.write(f"\nidle: {MANY} of {MANY}, {said}\n")


def test_every_message_reaches_a_busy_agent_once_and_in_order(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", permissions={"allow": ["Bash(echo *)"]})
    steps = [hold(f"step {number}", call("Bash", command=f"echo {number}")) for number in range(2 * MANY)]
    claude.api.script("begin here", *steps, hold("the end", say("All bricks laid.")))
    swarm = claude.begin("claude", "builder", "begin here")
    claude.until("builder", "working")
    words, ids = [f"brick {number};" for number in range(MANY)], []
    holds = [f"step {number}" for number in range(2 * MANY)]

    for word in words:
        (sent,) = swarm.send("builder@fx", word)
        ids.append(sent.id)
        _until(swarm, sent.id, "claimed", "seen", "acked")
        claude.api.open(holds.pop(0))
        # With the tool's result, in the middle of the turn; with the next one when the program had
        # not yet seen its hook end, which is a moment after the hook claimed the message.
        if not claude.api.hears(word, 20):
            claude.api.open(holds.pop(0))
            claude.api.heard(word, LONG)
        assert claude.state("builder") == "working"
    for held in (*holds, "the end"):
        claude.api.open(held)

    claude.shows("builder", "All bricks laid.")
    for one in ids:
        _until(swarm, one, "acked")
    _each_once_in_order(claude, words)


def test_eight_at_once_do_their_work_and_hear_one_broadcast(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", permissions={"allow": ["Bash(touch *)"]})
    for number in range(1, 9):
        claude.api.script(f"builder-{number}-fx", call("Bash", command=f"touch stone-{number}"), say("Laid."))
    swarm = claude.begin("claude", "builder:8", "begin here")
    for number in range(1, 9):
        name = f"builder-{number}"
        wait_for((claude.tree(name, "fx") / f"stone-{number}").exists, f"the stone of {name}", LONG)
        claude.until(name, "idle")
    sent = swarm.messages.broadcast("lunch is ready")
    assert len(sent) == 8
    for one in sent:
        _until(swarm, one.id, "acked")
    assert {path.name for path in claude.root.glob(".worktrees/*/stone-*")} == {f"stone-{n}" for n in range(1, 9)}
    swarm.cleanup(["fx"], force=True)
    wait_for(lambda: claude.agents_processes() == {}, "the end of what deletes")


def test_the_reviewer_allows_denies_and_leaves_to_a_person(claude: ClaudeLab) -> None:
    reviewer = {"instructions": "You are the gatekeeper, word GAVEL.", "model": "haiku", "timeout": "50s"}
    claude.role("builder", "You build.", permissions={"reviewer": reviewer})
    claude.api.script("GAVEL", hold("gavel", say("ALLOW")), say("DENY: not on a Friday"), say("I am not sure."))
    claude.api.script(
        "begin here",
        call("Bash", command="touch first"),
        call("Bash", command="touch second"),
        call("Bash", command="touch third"),
        say("That was all."),
    )
    swarm = claude.begin("claude", "builder", "begin here")
    wait_for(lambda: claude.one("builder").status.detail == "its reviewer decides about a tool", "the reviewer", LONG)
    assert claude.state("builder") == "working"  # nobody has to be called
    claude.api.open("gavel")

    def left_open() -> list[str]:
        return [one.question.id for one in swarm.approvals() if "touch third" in one.question.summary]

    wait_for(lambda: claude.state("builder") == "waiting" and left_open(), "what the reviewer left open", LONG)
    tree = claude.one("builder").worktree
    assert (tree / "first").exists()
    assert not (tree / "second").exists()
    assert "not on a Friday" in claude.api.heard("not on a Friday").text
    (open_one,) = left_open()
    claude.person.approvals.approve(open_one)

    claude.shows("builder", "That was all.")
    assert (tree / "third").exists()
    by = [one.answer.by for one in swarm.approvals(everything=True) if one.answer]
    assert sorted(by)[:2] == ["reviewer", "reviewer"]
    assert len(by) == 3
    assert {"haiku" in one.model for one in claude.api.requests("GAVEL")} == {True}
    told = [one for one in swarm.transcript("builder") if "GAVEL" in one.text or one.text == "ALLOW"]
    assert {(one.who, one.subagent) for one in told} == {("program", "reviewer"), ("reviewer", "reviewer")}


def test_a_tracked_file_of_instructions_stays_as_it_is_and_both_are_heard(claude: ClaudeLab) -> None:
    claude.write({"CLAUDE.md": "The project's word is QUARRY.\n", "CLAUDE.local.md": "Mine, and tracked.\n"})
    claude.role("builder", "You build, word ANVIL.", permissions={"allow": ["Bash(git *)"]})
    claude.commit("instructions of the project")
    who = "git -c user.name=C -c user.email=c@localhost"
    claude.api.script("begin here", call("Bash", command=f"{who} commit -qam mine --allow-empty"), say("Done that."))
    claude.begin("claude", "builder", "begin here")
    claude.shows("builder", "Done that.")

    asked = claude.api.heard("begin here")
    assert "ANVIL" in asked.system
    assert "QUARRY" in asked.text
    tree = claude.one("builder").worktree
    assert (tree / "CLAUDE.md").read_text() == "The project's word is QUARRY.\n"
    assert (tree / "CLAUDE.local.md").read_text() == "Mine, and tracked.\n"
    assert claude.git("status", "--porcelain", cwd=tree) == ""
    assert claude.git("diff", "--stat", "main", "swarm/builder-fx") == ""
