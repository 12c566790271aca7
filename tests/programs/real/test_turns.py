"""The real programs do tasks without a terminal: role and prompt in, result out, taken up again, ended whole."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import fail, hold, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_others import ready

if TYPE_CHECKING:
    from swarm import AgentTask
    from tests.support.agents import AgentLab, ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
LONG = 150.0
OTHERS = ["codex", "gemini", "opencode"]
ROLE = "You are the builder of bridges, word ANVIL."


def prepared(lab: AgentLab, program: str, **role: str) -> AgentLab:
    if program != "claude":
        ready(lab, program)
    lab.env["SWARM_TASKS_RETRY_PAUSE"] = "0"
    lab.role("builder", ROLE, **role)
    return lab


def told(lab: AgentLab, words: str) -> int:
    """Return how often the last request of a conversation has a prompt of the user with these words."""
    return sum(words in text for text in lab.api.requests()[-1].said)


def done(lab: AgentLab, task: AgentTask) -> AgentTask:
    found = lab.swarm.tasks.wait(task.id, LONG)
    assert found.failure is None, (found.failure, lab.swarm.tasks.output(task.id))
    return found


def does_a_held_task(lab: AgentLab, program: str, *, sandbox: bool = False, **role: str) -> None:
    """A task of two turns, the second in the same conversation; then its supervisor is killed in the third."""
    prepared(lab, program, **role)
    lab.api.script(
        "paint it green",
        say("Green it is."),
        hold("go", say("And well.")),
        say("Taken up."),
    )
    tasks = lab.swarm.tasks

    first = done(lab, tasks.submit("- paint it green", program=program, role="builder", hold=True, sandbox=sandbox))
    assert first.is_boxed is sandbox
    assert (first.state, first.output) == ("idle", "Green it is.")
    assert first.usage.input > 0
    assert first.usage.output > 0
    assert "word ANVIL" in lab.api.heard("paint it green").text

    tasks.continue_(first.id, "and well, please")
    lab.api.heard("and well, please")
    wait_for(lambda: tasks.get(first.id).run is not None, "its run")
    run = tasks.get(first.id).run
    assert run is not None
    os.kill(run.supervisor, signal.SIGKILL)
    second = done(lab, first)
    lab.api.open("go")
    assert second.state == "idle"
    assert [one.cause for one in second.runs] == ["exited", "lost", "exited"]
    assert second.runs[-1].resumed
    assert told(lab, "paint it green") == 1
    assert told(lab, "and well, please") == 1
    assert tasks.end(first.id).state == "completed"


#: So many answers with this error end a run of the program, as it tries again by itself; and what swarm makes of it.
ENDS: dict[str, tuple[int, int]] = {"claude": (500, 3), "codex": (429, 1)}


def passes_by_an_error(lab: AgentLab, program: str) -> None:
    """An error that may pass: the next run takes the conversation up, and the prompt is in it once."""
    prepared(lab, program)
    status, times = ENDS[program]
    lab.api.script("paint it green", *[fail(status, "later")] * times, say("Green it is."))

    found = done(lab, lab.swarm.tasks.submit("- paint it green", program=program, role="builder"))

    assert (found.state, found.output, len(found.runs)) == ("completed", "Green it is.", 2)
    assert found.runs[0].failure is not None
    assert found.runs[0].failure.retryable
    assert found.runs[1].resumed
    assert told(lab, "paint it green") == 1
    assert "retry" in [one.kind for one in lab.swarm.tasks.events(found.id)]


def fails_for_good(lab: AgentLab, program: str) -> None:
    """A wrong key, and a prompt that is too long: no second run."""
    prepared(lab, program)
    for status, words in ((401, "invalid x-api-key"), (400, "prompt is too long: 250000 tokens > 200000 maximum")):
        lab.api.script(f"case {status}", *[fail(status, words)] * 30)
        found = lab.swarm.tasks.wait(lab.swarm.tasks.submit(f"- case {status}", program=program).id, LONG)
        assert found.failure is not None
        assert (found.state, len(found.runs), found.failure.retryable) == ("failed", 1, False), found.failure


def test_codex_passes_by_a_rate_limit(agents: AgentLab) -> None:
    passes_by_an_error(agents, "codex")


def test_claude_code_passes_by_errors_of_the_server(claude: ClaudeLab) -> None:
    passes_by_an_error(claude, "claude")


@pytest.mark.parametrize("program", ["codex", "gemini"])
def test_an_error_for_good_is_not_tried_again(agents: AgentLab, program: str) -> None:
    fails_for_good(agents, program)


def test_an_error_for_good_of_claude_code_is_not_tried_again(claude: ClaudeLab) -> None:
    fails_for_good(claude, "claude")


@pytest.mark.story
@pytest.mark.parametrize("program", OTHERS)
def test_it_does_a_held_task_and_is_taken_up_after_a_kill(agents: AgentLab, program: str) -> None:
    does_a_held_task(agents, program)


@pytest.mark.story
def test_claude_code_does_a_held_task_and_is_taken_up_after_a_kill(claude: ClaudeLab) -> None:
    does_a_held_task(claude, "claude")
