"""The four programs in boxes reach their model by the door, and no key of the user is in there (issue 16, point 7)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from swarm.machine.run_folder.decisions import FILE
from swarm.sandbox.check import check
from swarm.testing.api import call, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_mcp_door import CALLED, told
from tests.programs.real.test_others import SHELL, counted, ready

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.testing.api.script import Turn
    from tests.support.agents import AgentLab, ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]


#: These ask before they run a command of their shell. Codex asks for a way out of its sandbox only, and a box has none.
ASKS = frozenset({"gemini", "opencode"})


@pytest.fixture(autouse=True)
def _boxes() -> None:
    found = check(os.environ)
    if not found.available:
        (pytest.fail if os.environ.get("SWARM_REQUIRE_BOX") else pytest.skip)(found.cause)


def decided(agents: AgentLab, agent: str) -> list[tuple[str, bool]]:
    """Return what was asked of the network, and whether it was allowed."""
    path = agents.root / ".swarm/sessions/fx/run" / agent / FILE
    lines = path.read_text().splitlines() if path.exists() else []
    return [(one["target"], one["allowed"]) for one in map(json.loads, lines)]


def begin(agents: AgentLab, program: str) -> None:
    # The settings of the user's program are not in the box, so the role names the model.
    model = {"model": "anthropic/claude-sonnet-4-5"} if program == "opencode" else {}
    agents.role("builder", "You are the builder of bridges, word ANVIL.", **model)
    agents.api.script("paint it green", say("Green it is."))
    agents.swarm.start("fx", ["builder"], task="paint it green", program=program, sandbox=True)


@pytest.mark.story
def test_claude_code_works_in_a_box(claude: ClaudeLab) -> None:
    begin(claude, "claude")

    claude.shows("builder", "Green it is.")
    asked = claude.api.heard("paint it green")
    assert "word ANVIL" in asked.text
    assert ("POST /v1/messages", True) in decided(claude, "builder")


@pytest.mark.story
@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_the_others_work_in_a_box(agents: AgentLab, program: str) -> None:
    """Role and task, tools by MCP, a question, a message into a turn, usage, transcript, and a new start."""
    ready(agents, program)
    # The settings of the user's program are not in the box, so the role names the model.
    model = {"model": "anthropic/claude-sonnet-4-5"} if program == "opencode" else {}
    agents.role("builder", "You are the builder of bridges, word ANVIL.", **model)
    agents.api.script(
        "paint it green",
        call(CALLED[program].format(server="swarm", tool="report"), message="half of it is green"),
        SHELL[program],
        say("Green it is."),
        call(CALLED[program].format(server="swarm", tool="inbox_take")),  # it was told that a message waits
        call(CALLED[program].format(server="swarm", tool="inbox_ack")),
        say("Blue it is."),
        say("Back again."),
    )
    swarm = agents.swarm
    swarm.start("fx", ["builder"], task="paint it green", program=program, sandbox=True)

    assert "word ANVIL" in agents.api.heard("paint it green").text
    told(agents, "half of it is green")
    wait_for(lambda: any(allowed for _, allowed in decided(agents, "builder")), "a request by the door", 30)
    if program in ASKS:
        agents.until("builder", "waiting")
        agents.keys("builder", "Enter")
    agents.shows("builder", "Green it is.")
    agents.until("builder", "idle")
    wait_for((agents.one("builder").worktree / "made").exists, "what its shell made", 30)

    (sent,) = swarm.send("builder@fx", "please paint it blue")
    agents.shows("builder", "Blue it is.")
    wait_for(lambda: swarm.messages.get(sent.id)[0].stored.state == "acked", "the message to be acknowledged", 90)
    assert "please paint it blue" in agents.api.requests()[-1].text
    agents.until("builder", "idle")

    wait_for(lambda: counted(agents) == agents.api.counted(), "the same count on both sides", 90)
    assert any("Blue it is." in entry.text for entry in swarm.transcript("builder"))
    swarm.stop(["fx"])
    swarm.resume(["fx"])
    agents.shows("builder", "Blue it is.")
    agents.until("builder", "idle")
    agents.say("builder", "tell me where you are")
    agents.shows("builder", "Back again.")
    last = agents.api.heard("tell me where you are").text
    assert "Blue it is." in last
    assert "word ANVIL" in last


def test_claude_code_in_a_box_is_told_asks_commits_and_goes_on(claude: ClaudeLab) -> None:
    claude.role("builder", "You are the builder of bridges, word ANVIL.")
    claude.api.script(
        "begin",
        call("mcp__swarm__report", message="I have begun"),
        call("Bash", command="echo roses > poem.txt && git add poem.txt && git commit -q -m poem"),
        say("Committed."),
        say("Painted blue."),
        say("Blue it was."),
    )
    swarm = claude.swarm
    swarm.start("fx", ["builder"], task="begin", program="claude", sandbox=True)

    told(claude, "I have begun")  # a tool of swarm's, in the first turn, and nobody is asked

    # A permission is asked for outside of the box, and answered there.
    wait_for(swarm.approvals, "its question", 90)
    assert claude.state("builder") == "waiting"
    claude.person.approvals.approve(swarm.approvals()[0].question.id)
    claude.shows("builder", "Committed.")
    wait_for(lambda: claude.git("log", "-1", "--format=%s", "swarm/builder-fx") == "poem", "its commit, taken in", 30)
    claude.until("builder", "idle")

    # A message comes into a turn, by a hook in the box.
    (sent,) = swarm.send("builder@fx", "please paint it blue")
    claude.shows("builder", "Painted blue.")
    wait_for(lambda: swarm.messages.get(sent.id)[0].stored.state == "acked", "the message to be acknowledged", 90)
    claude.until("builder", "idle")

    # What it used and said is read outside, and a new start takes up the conversation.
    assert swarm.usage("fx").total.tokens
    assert any("Painted blue." in entry.text for entry in swarm.transcript("builder"))
    swarm.stop(["fx"])
    swarm.resume(["fx"])
    claude.until("builder", "idle")
    claude.say("builder", "which colour?")
    claude.shows("builder", "Blue it was.")
    assert "Painted blue." in claude.api.heard("which colour?").text


#: How each program's model runs a command.
_RUN: dict[str, Callable[[str], Turn]] = {
    "claude": lambda command: call("Bash", command=command),
    "codex": lambda command: call("exec_command", cmd=command),
    "gemini": lambda command: call("run_shell_command", command=command, description="x"),
    "opencode": lambda command: call("bash", command=command, description="x"),
}


def under_rules(agents: AgentLab, program: str) -> None:
    """The guard refuses a command that a rule names; the box holds what a script does that no guard understands."""
    model = {"model": "anthropic/claude-sonnet-4-5"} if program == "opencode" else {}
    agents.write({"vault/keep": "x\n"})
    agents.commit("a vault")
    rules = {"allow": ["Bash(touch *)", "Bash(python3 *)"], "deny": ["Bash(touch secret*)", "Edit(vault/**)"]}
    mode = "default" if program == "claude" else "bypassPermissions"  # which that refuses to root
    agents.role("builder", "You build.", permission_mode=mode, permissions=rules, **model)
    run = _RUN[program]
    hidden = "python3 -c \"import os; open(os.path.join('va' + 'ult', 'in.txt'), 'w')\""
    agents.api.script("under rules", run("touch secret-one"), run(hidden), run("touch plain"), say("All tried."))

    agents.swarm.start("fx", "builder", task="work under rules", program=program, sandbox=True)

    agents.shows("builder", "All tried.")
    tree = agents.root / ".worktrees" / "builder-fx"
    assert (tree / "plain").exists()
    assert not (tree / "secret-one").exists()
    assert [path.name for path in (tree / "vault").iterdir()] == ["keep"]
    assert "Read-only file system" in agents.api.requests("under rules")[-1].text


def test_deny_rules_hold_for_claude_code_in_a_box(claude: ClaudeLab) -> None:
    under_rules(claude, "claude")


@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_deny_rules_hold_for_the_others_in_a_box(agents: AgentLab, program: str) -> None:
    ready(agents, program)

    under_rules(agents, program)
