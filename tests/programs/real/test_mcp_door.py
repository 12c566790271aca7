"""The MCP door of the real programs: the tools are in the first turn, a call asks nobody, and it has its effect."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.agents.launching import door
from swarm.api import serving
from swarm.testing.api import call, hold, say
from swarm.testing.terminal import wait_for
from tests.programs.real.conftest import lab_in
from tests.programs.real.test_others import ready
from tests.support.agents import AgentLab
from tests.support.procs import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
#: What each calls a tool of a server.
CALLED = {
    "claude": "mcp__{server}__{tool}",
    "codex": "mcp__{server}__{tool}",
    "gemini": "mcp_{server}_{tool}",
    "opencode": "{server}_{tool}",
}
PROGRAMS = sorted(CALLED)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Give a folder below no folder that others may write to: Gemini CLI leaves settings in such a place aside."""
    place = PROJECT / ".cache"
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="real-", dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


@pytest.fixture
def elsewhere() -> Iterator[AgentLab]:
    """Give a lab below a folder to which others may write."""
    with tempfile.TemporaryDirectory(prefix="real-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield from lab_in(AgentLab, Path(folder))


def lab_of(program: str, agents: AgentLab) -> AgentLab:
    """Give the program what its user would have."""
    if program == "claude":
        agents.env |= {
            "ANTHROPIC_BASE_URL": agents.api.url,
            "ANTHROPIC_API_KEY": agents.api.token,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
    else:
        ready(agents, program)
    return agents


def told(agents: AgentLab, body: str) -> None:
    """Wait until the user has the report of the builder."""
    wait_for(
        lambda: (
            ("builder@fx", body)
            in [(one.message.sender, one.message.body) for one in agents.swarm.messages.inbox("user")]
        ),
        f"the report {body!r}",
        90,
    )


@pytest.mark.story
@pytest.mark.parametrize("print_mode", [False, True], ids=["dialog", "print"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_tool_is_called_in_the_first_turn_without_a_question(
    agents: AgentLab, program: str, print_mode: bool
) -> None:
    """TREE-22, CLI-09, C-11, ENV-07: no daemon, no dialog, and nothing in the worktree."""
    lab_of(program, agents)
    agents.role("builder", "You are the builder of bridges, word ANVIL.")
    tool = CALLED[program].format(server="swarm", tool="report")
    send = CALLED[program].format(server="swarm", tool="send_message")
    agents.api.script(
        "paint it green",
        call(tool, message="half of it is green"),
        call(send, to="nobody", body="hello"),
        say("Green it is."),
    )
    agents.swarm.start("fx", "builder", task="paint it green", program=program, print_mode=print_mode)

    first = agents.api.heard("paint it green")
    agents.shows("builder", "Green it is.")
    told(agents, "half of it is green")
    assert "inbox_ack" in first.text
    last = agents.api.requests()[-1].text
    assert "AGENT_NOT_FOUND" in last, "what is wrong is told to the model"
    assert agents.git("status", "--porcelain", cwd=agents.one("builder").worktree) == ""


def test_gemini_has_its_tools_where_it_takes_no_settings_of_an_administrator(elsewhere: AgentLab) -> None:
    """As every user has it who is not root: by a home of links, with the user's login and conversations (ENV-07)."""
    agents = lab_of("gemini", elsewhere)
    agents.role("builder", "You are the builder of bridges, word ANVIL.")
    agents.api.script(
        "paint it green", call("mcp_swarm_report", message="half of it is green"), say("Green it is."), say("Again.")
    )
    agents.swarm.start("fx", "builder", task="paint it green", program="gemini")

    assert "inbox_ack" in agents.api.heard("paint it green").text
    agents.shows("builder", "Green it is.")
    told(agents, "half of it is green")
    assert (agents.run("builder") / "gemini/.gemini/tmp").is_symlink()
    wait_for(lambda: [*agents.home.glob(".gemini/tmp/*/chats/session-*")], "its conversation in the user's home", 60)
    assert "mcpServers" not in (agents.home / ".gemini/settings.json").read_text()
    wait_for(lambda: agents.swarm.usage("fx").total.tokens, "its tokens, counted", 60)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_door_that_opens_after_eight_seconds_is_there_in_the_first_turn(
    agents: AgentLab, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab_of(program, agents)
    agents.role("builder", "You are the builder of bridges, word ANVIL.")
    quick = door.command_of
    slowly = "import os, sys, time; time.sleep(8); os.execv(sys.argv[1], sys.argv[1:])"
    monkeypatch.setattr(door, "command_of", lambda *words: (sys.executable, "-c", slowly, *quick(*words)))
    tool = CALLED[program].format(server="swarm", tool="report")
    agents.api.script("paint it green", call(tool, message="it was there"), say("Green it is."))

    agents.swarm.start("fx", "builder", task="paint it green", program=program)

    assert "inbox_ack" in agents.api.heard("paint it green").text
    told(agents, "it was there")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_server_that_is_killed_under_it_is_no_end_of_its_tools(agents: AgentLab, program: str) -> None:
    """TREE-18: with the next server, and without one, the same tools go on; the project's own server keeps its name."""
    lab_of(program, agents)
    theirs = '{"mcpServers": {"swarm": {"command": "no-such-program"}}}'
    agents.write({".mcp.json": theirs})
    agents.commit("a server called swarm")
    agents.role("builder", "You are the builder of bridges, word ANVIL.")
    name = "swarm_team" if program == "claude" else "swarm"
    tool = CALLED[program].format(server=name, tool="report")
    agents.api.script(
        "paint it green",
        call(tool, message="by the first server"),
        hold("killed", call(tool, message="by nobody's server")),
        hold("started", call(tool, message="by the next")),
        say("Green it is."),
    )
    first = serving_process(agents)
    agents.swarm.start("fx", "builder", task="paint it green", program=program)
    told(agents, "by the first server")
    first.kill()
    first.wait()
    agents.api.open("killed")
    told(agents, "by nobody's server")
    second = serving_process(agents)
    try:
        agents.api.open("started")
        told(agents, "by the next")
        agents.shows("builder", "Green it is.")
        assert (agents.one("builder").worktree / ".mcp.json").read_text() == theirs
        assert agents.git("status", "--porcelain", cwd=agents.one("builder").worktree) == ""
    finally:
        second.terminate()
        assert second.wait(30) == 0


def serving_process(agents: AgentLab) -> subprocess.Popen[bytes]:
    """Start the server of the repository."""
    made = subprocess.Popen([sys.executable, "-P", "-m", "swarm", "serve"], cwd=agents.root, env=agents.env)
    wait_for(lambda: serving.status(agents.root) is not None, "the server", 90)
    return made
