"""``swarm run --role R -- arguments``: each real program gets them, in its pane, after a resume, and in print mode."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import say
from tests.programs.real.test_others import ready

if TYPE_CHECKING:
    from tests.support.agents import AgentLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

#: Arguments of the program, and the model of which its API then hears.
ARGS = {
    "claude": (("--model", "haiku", "--allowedTools", "Read"), "haiku"),
    "codex": (("-c", 'model="gpt-5-mini"'), "gpt-5-mini"),
    "gemini": (("--model", "gemini-2.5-flash"), "gemini-2.5-flash"),
    "opencode": (("--model", "anthropic/claude-haiku-4-5"), "claude-haiku-4-5"),
}


@pytest.fixture
def lab(request: pytest.FixtureRequest, program: str) -> AgentLab:
    found: AgentLab = request.getfixturevalue("claude" if program == "claude" else "agents")
    if program == "claude":  # whom to trust in the main checkout is the user's to say; the other questions are answered
        found.at_home(".claude.json", {"projects": {str(found.root): {"hasTrustDialogAccepted": True}}})
    else:
        ready(found, program)
    found.role("builder", "You are the builder of bridges, word ANVIL.")
    return found


@pytest.mark.parametrize("program", ARGS)
def test_what_stands_behind_the_dashes_reaches_the_program_also_after_a_resume(lab: AgentLab, program: str) -> None:
    args, model = ARGS[program]
    lab.api.script("paint it green", say("Green it is."), say("Back again."))

    done = lab.cli("run", "--role", "builder", "--agent", program, "--task", "paint it green", "--detach", "--", *args)

    assert done.returncode == 0, done.stderr
    asked = lab.api.heard("paint it green")
    assert model in asked.model
    assert "word ANVIL" in asked.text
    lab.shows("builder", "Green it is.")
    lab.until("builder", "idle")
    assert lab.one("builder").agent.args == args
    lab.swarm.stop(["builder"])
    lab.until("builder", "stopped")
    lab.swarm.resume(["builder"])
    lab.until("builder", "idle")
    lab.say("builder", "tell me where you are")
    again = lab.api.heard("tell me where you are")
    assert model in again.model
    assert "Green it is." in again.text


@pytest.mark.parametrize("program", ARGS)
def test_they_reach_a_program_whose_result_is_wanted(lab: AgentLab, program: str) -> None:
    args, model = ARGS[program]
    lab.api.script("paint it green", say("Green it is."))

    done = lab.cli("run", "builder", "paint it green", "--agent", program, "--json", "--", *args)

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["data"]["state"]) == (0, "done"), answer
    assert "Green it is." in answer["data"]["text"]
    assert model in lab.api.heard("paint it green").model
