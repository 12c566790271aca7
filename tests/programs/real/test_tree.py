"""A tree of the real programs, unattended: each of the four leads once, the others are its children (TREE-25)."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import call, hang, hold, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_mcp_door import CALLED, lab_of
from tests.support.procs import PROJECT
from tests.support.tree import as_agent, told, worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.api import Turn
    from tests.support.agents import AgentLab, ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900)]
LONG = 300.0
LEAD = "work on OAKTREE"
#: The program of the lead, then those of its subtree, of the worker that reports, and of the one that crashes.
TREES = {
    "claude": ("codex", "gemini", "opencode"),
    "codex": ("gemini", "opencode", "claude"),
    "gemini": ("opencode", "claude", "codex"),
    "opencode": ("claude", "codex", "gemini"),
}
#: What each calls its shell, and the word for a command in it.
SHELL = {
    "claude": ("Bash", "command"),
    "codex": ("exec_command", "cmd"),
    "gemini": ("run_shell_command", "command"),
    "opencode": ("bash", "command"),
}
#: As the role of whoever runs commands without anybody who is asked.
FREE = {"permission_mode": "bypassPermissions"}
ALLOWED = {"permission_mode": "acceptEdits", "permissions": {"allow": ["Bash"]}}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Give a folder below no folder that others may write to: Gemini CLI leaves settings in such a place aside."""
    place = PROJECT / ".cache"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tree-", dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


def shown(agents: AgentLab) -> str:
    """Return what all agents show, for a failure's message."""
    found = []
    for team in agents.swarm.status():
        for one in team.agents:
            name, session = one.agent.name, team.session.name
            lines = [line.rstrip() for line in agents.swarm.peek(name, session, lines=60) if line.strip()]
            found += [f"--- {name}@{session}: {one.status.state}", *lines[-25:]]
    return "\n".join(found)


def tool(program: str, which: str, **given: str) -> Turn:
    return call(CALLED[program].format(server="swarm", tool=which), **given)


def shell(program: str, command: str) -> Turn:
    name, word = SHELL[program]
    more = {} if program == "codex" else {"description": "x"}
    return call(name, **{word: command}, **more)


def role(agents: AgentLab, name: str, program: str) -> None:
    """Write the role of an agent that works alone."""
    agents.role(name, f"You are a {name}.", agent_type=program, **(ALLOWED if program == "claude" else FREE))


def read(lead: str) -> tuple[Turn, Turn]:
    """Read what waits, and acknowledge it: what is not acknowledged would be all that the next look gives."""
    return tool(lead, "inbox_take"), shell(lead, "swarm inbox ack")


def until_heard(agents: AgentLab, lead: str, words: str) -> None:
    """Wait until the lead was told something; Claude Code hears it by itself, the others look into their inbox."""

    def heard() -> bool:
        if any(words in one.text for one in agents.api.requests(LEAD)):
            return True
        if lead != "claude" and not agents.api.left(LEAD):
            agents.api.script(LEAD, *read(lead), say("I have read it."))
        return False

    try:
        wait_for(heard, f"the lead to hear {words!r}", LONG)
    except AssertionError as error:
        raise AssertionError(f"{error}; all show:\n{shown(agents)}") from None
    wait_for(lambda: not agents.api.left(LEAD), "the end of its turn", LONG)
    agents.until("boss", "idle", deadline=LONG)


@pytest.mark.parametrize("lead", [pytest.param("claude", marks=pytest.mark.story), *sorted({*TREES} - {"claude"})])
def test_a_lead_spawns_is_woken_merges_and_cleans(agents: AgentLab, lead: str) -> None:
    """One works in a branch of its own, one beside the lead, one crashes; each outcome reaches the idle lead."""
    subtree, reports, crashes = TREES[lead]
    for program in CALLED:
        lab_of(program, agents)
    agents.env["SWARM_AGENTS_NUDGE_PAUSE"] = "10"
    for key, value in (("user.name", "Lead"), ("user.email", "lead@localhost")):
        agents.git("config", key, value)  # Gemini's shell drops most of the environment
    for name, program in (("boss", lead), ("lead", subtree), ("worker", reports)):
        role(agents, name, program)
    agents.api.script(  # the first script that fits counts: what its children are told is in its conversation, too
        LEAD,
        tool(lead, "spawn_subtree", task="work on BIRCH", branch_name="auth"),
        tool(lead, "spawn_worker", name="tests", prompt="work on CEDAR"),
        hold("another program", tool(lead, "spawn_worker", name="docs", prompt="work on DOGWOOD")),
        say("All three are at work."),
    )
    agents.api.script(
        "work on BIRCH",
        shell(subtree, "echo login > login.txt && git add login.txt && git commit -qm login"),
        tool(subtree, "notify_parent", status="success", message="the login is done"),
        say("Done with BIRCH."),
    )
    notify = tool(reports, "notify_parent", status="success", message="41 of 41 pass")
    agents.api.script("work on CEDAR", notify, say("Done with CEDAR."))
    agents.api.script("work on DOGWOOD", hang())

    agents.swarm.start("fx", "boss", task=LEAD)
    assert agents.api.hears("work on CEDAR", LONG), shown(agents)
    assert (agents.root / ".swarm/worktrees/auth/.git").exists()
    assert (agents.root / ".worktrees/boss-fx/.swarm/agents/tests/agent.json").exists()
    role(agents, "worker", crashes)
    agents.api.open("another program")
    wait_for((agents.run("docs", "fx-docs") / "process.json").exists, "the third to run", LONG)
    until_heard(agents, lead, "the login is done")
    until_heard(agents, lead, "41 of 41 pass")

    # it is idle, and the crash of the third wakes it
    agents.api.script(
        LEAD,
        *((tool(lead, "list_agents"),) if lead == "claude" else read(lead)),
        shell(lead, "swarm merge --tree auth"),
        say("The login is merged."),
    )
    os.kill(agents.one("docs", "fx-docs").pid, signal.SIGKILL)
    until_heard(agents, lead, "docs@fx-docs is failed")

    tree = agents.root / ".swarm/worktrees/auth"
    wait_for(lambda: not tree.exists(), "the subtree to be merged and removed", LONG)
    wait_for(lambda: "auth" not in [one.name for one in agents.swarm.sessions()], "its record to go", LONG)
    assert agents.git("show", "swarm/boss-fx:login.txt") == "login"
    completions = [one for one in told(agents, "boss-fx") if one[0] == "WorkerComplete"]
    assert sorted(completions) == [
        ("WorkerComplete", "docs@fx-docs", "failure"),
        ("WorkerComplete", "lead@auth", "success"),
        ("WorkerComplete", "tests@fx-tests", "success"),
    ]
    assert agents.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main", "swarm/boss-fx"]


def test_an_idle_claude_lead_hears_of_each_completion_at_once(claude: ClaudeLab) -> None:
    """The times are shown, with -s: from the end of notify_parent to the request of the lead that holds it."""
    claude.role("boss", "You lead.")
    claude.api.script(LEAD, say("I wait for them."))
    claude.begin("claude", "boss", LEAD)
    claude.shows("boss", "I wait for them.")
    claude.until("boss", "idle")
    took = []
    for number in range(3):
        made = worker(claude, f"w{number}", by=as_agent(claude, "boss", "fx"))
        helper = as_agent(claude, made.agent.name, made.agent.session)
        claude.until("boss", "idle")
        helper.tree.notify_parent("success", f"piece {number} is done")
        said = time.monotonic()
        claude.api.heard(f"piece {number} is done")
        took.append((time.monotonic() - said) * 1000)
    load = os.getloadavg()[0]
    sys.stdout.write(f"\ncompletion to turn of an idle lead: {[round(one) for one in took]} ms at load {load:.0f}\n")
    assert sorted(one for one, *_ in told(claude, "boss-fx")) == ["WorkerComplete"] * 3
