"""What `swarm usage` counts is what the model's side has told, with the real programs; and budgets hold for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import call, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_others import ready

if TYPE_CHECKING:
    from tests.support.agents import AgentLab, ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
LONG = 90.0
#: A command of each program's shell that needs no permission.
ECHO = {
    "codex": call("exec_command", "Let me see.", cmd="echo one"),
    "gemini": call("run_shell_command", "Let me see.", command="echo one", description="x"),
    "opencode": call("bash", "Let me see.", command="echo one", description="x"),
}


def counted(lab: AgentLab) -> tuple[int, int, int, int]:
    """Return what swarm counts: answers, tokens read, from the cache, written."""
    total = lab.swarm.usage("fx").total
    return total.requests, total.input, total.cache_read, total.output


def agree(lab: AgentLab) -> None:
    """Wait until both sides tell the same: the programs write a moment later."""
    try:
        wait_for(lambda: counted(lab) == lab.api.counted(), "the same count on both sides", LONG)
    except AssertionError as error:
        raise AssertionError(f"{error}: {counted(lab)} is not {lab.api.counted()}") from None


def warnings(lab: AgentLab) -> list[str]:
    subjects = [message.message.subject for message in lab.swarm.messages.inbox("user")]
    return [subject for subject in subjects if "% of its budget" in subject]


def said(lab: AgentLab) -> list[str]:
    return [f"{one.who} {one.kind}: {one.text.strip()}" for one in lab.swarm.transcript("builder", "fx")]


def test_claude_code_with_tools_a_subagent_a_cleared_conversation_and_a_resume(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", permissions={"allow": ["Bash(echo *)", "Task", "Agent"]})
    claude.api.script(
        "paint it green",
        call("Bash", "Let me see.", command="echo one"),
        call("Task", description="sub", prompt="do subwork", subagent_type="general-purpose"),
        say("Handed on.", tokens=(2000, 20), cached=50_000),
        say("Green it is.", tokens=(1000, 100)),
    )
    claude.api.script("do subwork", call("Bash", command="echo two"), say("Subwork done.", tokens=(333, 33)))
    claude.api.script("now in blue", say("Blue it is.", tokens=(7, 8)), say("Still blue.", tokens=(9, 1)))
    swarm = claude.begin("claude", "builder", "paint it green")
    claude.shows("builder", "Handed on.")
    claude.api.heard("do subwork")
    claude.until("builder", "idle")
    wait_for(lambda: claude.api.left("do subwork") == 0, "the subagent's end", LONG)
    agree(claude)
    claude.type("builder", "/clear")
    wait_for(lambda: "user note: /clear" in said(claude), "a cleared conversation", LONG)
    claude.type("builder", "now in blue")
    claude.shows("builder", "Blue it is.")
    claude.until("builder", "idle")
    agree(claude)
    swarm.stop(["fx"])
    swarm.resume(["fx"])
    claude.until("builder", "idle")
    agree(claude)  # nothing is counted twice

    found = said(claude)
    for words in (
        "user text: paint it green",
        "agent text: Let me see.",
        "agent call: echo one",
        "program result: one",
    ):
        assert words in found, words
    assert any(one.subagent and one.text == "Subwork done." for one in swarm.transcript("builder"))
    assert found.count("agent text: Blue it is.") == 1
    (one,) = swarm.usage().agents
    assert one.minutes > 0
    swarm.cleanup(["fx"], force=True)
    agree(claude)
    assert "agent text: Blue it is." in said(claude)


@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_the_others(agents: AgentLab, program: str) -> None:
    ready(agents, program)
    mode = {"permission_mode": "bypassPermissions"} if program == "gemini" else {"permission_mode": "dontAsk"}
    if program == "opencode":
        mode = {"permission_mode": "bypassPermissions"}
    agents.role("builder", "You build.", **mode)
    last = (say("Green it is.", tokens=(1000, 100), cached=5000), say("Back again.", tokens=(30, 3)))
    agents.api.script("paint it green", ECHO[program], *last)
    swarm = agents.begin(program, "builder", "paint it green")
    agents.shows("builder", "Green it is.")
    agents.until("builder", "idle")
    agree(agents)
    swarm.stop(["fx"])
    swarm.resume(["fx"])
    agents.shows("builder", "Green it is.")
    agents.until("builder", "idle")
    agents.say("builder", "and what now")
    agents.shows("builder", "Back again.")
    agree(agents)

    found = said(agents)
    assert any("paint it green" in line and line.startswith("user text") for line in found)
    for words in (
        "agent text: Let me see.",
        "agent call: echo one",
        "agent text: Green it is.",
        "user text: and what now",
    ):
        assert found.count(words) == 1, (words, found)
    assert any(line.startswith("program result:") for line in found), found  # under load Gemini's may be empty


def test_a_budget_holds_for_claude_code(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", limits={"tokens": 10_000})
    claude.api.script("paint it green", say("Nearly.", tokens=(8500, 0)), say("Too much.", tokens=(2000, 0)))
    claude.begin("claude", "builder", "paint it green")
    claude.shows("builder", "Nearly.")
    wait_for(lambda: "85 % of its budget" in claude.one("builder").status.detail, "the warning", LONG)
    wait_for(lambda: len(warnings(claude)) == 1, "the notice", LONG)
    (claude.one("builder").worktree / "work.txt").write_text("kept")
    claude.until("builder", "idle")

    claude.type("builder", "go on")

    found = claude.until("builder", "stopped")
    assert found.status.detail == "over its budget of 10,000 tokens (10,500 used)"
    assert (found.worktree / "work.txt").exists()
    assert warnings(claude) == ["builder@fx: 85 % of its budget of 10,000 tokens used"]
