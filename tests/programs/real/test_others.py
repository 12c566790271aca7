"""Codex, Gemini CLI and opencode in panes: no dialog, role and task in, state known, conversation resumed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine.sockets.status_client import Asking
from swarm.testing.api import Turn, call, hold, say
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from tests.support.agents import AgentLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
#: What each calls its shell, and what makes it ask.
SHELL: dict[str, Turn] = {
    "codex": call(
        "exec_command", cmd="touch made", sandbox_permissions="require_escalated", justification="to make it"
    ),
    "gemini": call("run_shell_command", command="touch made", description="make a file"),
    "opencode": call("bash", command="touch made", description="make a file"),
}


def counted(agents: AgentLab) -> tuple[int, int, int, int]:
    """Return what swarm counts: answers, tokens read, from the cache, written."""
    total = agents.swarm.usage("fx").total
    return total.requests, total.input, total.cache_read, total.output


def ready(agents: AgentLab, program: str) -> None:
    """Give the program what its user would have: an account, here at the scripted API."""
    url, token = agents.api.url, agents.api.token
    if program == "codex":
        provider = f'[model_providers.x]\nname="x"\nbase_url="{url}/v1"\nenv_key="XKEY"\nwire_api="responses"\n'
        agents.at_home(".codex/config.toml", f'model="gpt-5"\nmodel_provider="x"\n{provider}')
        agents.env["XKEY"] = token
    elif program == "gemini":
        agents.at_home(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
        agents.env |= {"GEMINI_API_KEY": token, "GOOGLE_GEMINI_BASE_URL": url}
    else:
        options: dict[str, Any] = {"options": {"baseURL": f"{url}/v1", "apiKey": token}}
        config = {"model": "anthropic/claude-sonnet-4-5", "provider": {"anthropic": options}}
        agents.at_home(".config/opencode/opencode.json", config)
        agents.env["OPENCODE_DISABLE_MODELS_FETCH"] = "1"


def answer(agents: AgentLab) -> tuple[str, str] | None:
    """Return what the agent's supervisor says, which sees no screen (SESS-14)."""
    info = Asking({"it": agents.one("builder").socket}).answers()["it"].info
    return (info.state, info.detail) if info is not None else None


@pytest.mark.story
@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_its_life(agents: AgentLab, program: str) -> None:
    ready(agents, program)
    agents.role("builder", "You are the builder of bridges, word ANVIL.")
    agents.api.script(
        "paint it green",
        hold("go", say("Green it is.")),
        SHELL[program],
        say("It is made."),
        say("Back again."),
    )
    agents.begin(program, "builder", "paint it green")

    asked = agents.api.heard("paint it green")
    assert "word ANVIL" in asked.text
    agents.until("builder", "working")
    agents.api.open("go")
    agents.shows("builder", "Green it is.")
    found = agents.until("builder", "idle")
    evidence = [one for one in found.status.evidence if one.decides]
    assert [one.source for one in evidence] == ["screen"]
    assert f"(rule {program}/" in evidence[0].text
    wait_for(lambda: agents.one("builder").status.detail == "Green it is.", "its last words in its state", 90)
    wait_for(lambda: answer(agents) == ("idle", "Green it is."), "the same on its socket, from the last look", 90)
    assert agents.git("status", "--porcelain", cwd=found.worktree) == ""

    agents.say("builder", "make the file")
    agents.until("builder", "waiting")
    wait_for(lambda: agents.one("builder").status.detail == "for permission: touch made", "what it asks", 90)
    wait_for(lambda: answer(agents) == ("waiting", "for permission: touch made"), "the same on its socket", 90)
    assert not (found.worktree / "made").exists()
    agents.keys("builder", "Enter")
    agents.shows("builder", "It is made.")
    agents.until("builder", "idle")
    assert (found.worktree / "made").exists()

    os.kill(agents.one("builder").pid, signal.SIGKILL)
    agents.until("builder", "failed")
    agents.swarm.resume(["fx"])
    agents.shows("builder", "It is made.")
    agents.until("builder", "idle")
    agents.say("builder", "tell me where you are")
    agents.shows("builder", "Back again.")
    last = agents.api.heard("tell me where you are")
    assert "Green it is." in last.text
    assert "word ANVIL" in last.text


@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_in_print_mode_it_does_its_task_and_ends(agents: AgentLab, program: str) -> None:
    """Nobody is asked: what would be is denied. Its records are counted as those of any other."""
    ready(agents, program)
    agents.role("builder", "You are the builder of bridges, word ANVIL.")
    agents.api.script("paint it green", hold("go", SHELL[program]), say("Green it is."))
    task = '- paint it green\nand  "well" --format 007 1e3 '
    agents.swarm.start("fx", "builder", task=task, program=program, print_mode=True)

    asked = agents.api.heard("paint it green")
    assert "word ANVIL" in asked.text
    assert any(task.strip() in words for words in asked.said), asked.said
    found = agents.until("builder", "working")
    assert "in print mode" in next(one.text for one in found.status.evidence if one.decides)
    agents.api.open("go")

    done = agents.until("builder", "done")
    agents.shows("builder", "Green it is.")
    assert not (done.worktree / "made").exists()
    assert agents.git("status", "--porcelain", cwd=done.worktree) == ""
    wait_for(lambda: counted(agents) == agents.api.counted(), "the same count on both sides", 90)
    wait_for(
        lambda: any("is done" in one.message.subject for one in agents.swarm.messages.inbox("user")), "the notice", 90
    )


@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_in_print_mode_a_stopped_one_goes_on_and_a_restart_does_it_anew(agents: AgentLab, program: str) -> None:
    ready(agents, program)
    agents.role("builder", "You are the builder of bridges, word ANVIL.", print=True)
    agents.api.script("paint it green", hold("never", say("Not heard.")), say("Gone on."), say("Once more."))
    agents.begin(program, "builder", "paint it green")
    agents.api.heard("paint it green")

    agents.swarm.stop(["fx"])
    agents.until("builder", "stopped")
    agents.swarm.resume(["fx"])

    agents.until("builder", "done")
    agents.shows("builder", "Gone on.")
    last = agents.api.requests()[-1]
    assert "Go on with it" in last.text
    assert "paint it green" in last.text
    assert "word ANVIL" in last.text

    agents.swarm.restart("builder", "fx")

    agents.shows("builder", "Once more.")
    agents.until("builder", "done")
    assert "Go on with it" not in agents.api.requests()[-1].text


#: How each runs a command of its shell that it need not ask for.
TAKE: dict[str, Turn] = {
    "codex": call("exec_command", cmd="swarm inbox take --ack", yield_time_ms=30_000),
    "gemini": call("run_shell_command", command="swarm inbox take --ack", description="read"),
    "opencode": call("bash", command="swarm inbox take --ack", description="read"),
}


@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_a_message_is_told_to_the_idle_program_which_takes_it(agents: AgentLab, program: str) -> None:
    ready(agents, program)
    agents.role("builder", "You build.", permission_mode="bypassPermissions")
    agents.api.script("begin here", hold("go", say("I wait.")), TAKE[program], say("Heard it."))
    swarm = agents.begin(program, "builder", "begin here")
    agents.until("builder", "working")
    (sent,) = swarm.send("builder@fx", "paint it blue")
    agents.api.open("go")  # it waited until the program was idle

    agents.shows("builder", "Heard it.")

    told = agents.api.heard("paint it blue")
    assert told.conversation == "begin here"
    found = swarm.messages.get(sent.id)[0]
    assert found.stored.state == "acked"
    names = [event.name for event in found.events]
    assert names.index("queued") < names.index("nudged") < names.index("claimed") < names.index("acked")
    how = found.events[names.index("nudged")].evidence
    assert how.startswith("codex queue --thread " if program == "codex" else "pasted into %"), how
