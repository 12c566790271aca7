"""Held tasks of the real programs: told more, asked for, and taken over into a pane and back."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from swarm.approvals.store import Approvals
from swarm.approvals.values import Answer, Verdict
from swarm.testing.api import call, hold, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_turns import LONG, done, prepared

if TYPE_CHECKING:
    from swarm import Approval
    from tests.support.agents import AgentLab, ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
ASKS = call("Bash", command="touch made", description="x")
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}],
}


def asked(lab: ClaudeLab, but: str = "") -> Approval:
    found: list[Approval] = []

    def there() -> bool:
        found[:] = [one for one in lab.swarm.approvals() if one.question.id != but]
        return bool(found)

    wait_for(there, "its request", LONG)
    return found[0]


def answer(lab: ClaudeLab, one: Approval, given: Answer) -> None:
    Approvals(lab.root / ".swarm/approvals").answer(one.question.id, given)


def said(lab: AgentLab, words: str) -> int:
    """Return how often the last request of the conversation has these words."""
    return sum(text.count(words) for text in lab.api.requests()[-1].said)


@pytest.mark.story
def test_it_is_steered_while_it_works_and_asks(claude: ClaudeLab) -> None:
    prepared(claude, "claude")
    claude.api.script("paint it", ASKS, call("AskUserQuestion", questions=[QUESTION]), say("Blue it is."))
    tasks = claude.swarm.tasks
    task = tasks.submit("- paint it", program="claude", role="builder", hold=True, task_id="one")

    request = asked(claude)
    assert (request.question.who, request.question.summary) == ("task one", "Bash(touch made)")
    sent = tasks.message("one", "and well, please")
    answer(claude, request, Answer(Verdict.ALLOW, "user:test"))
    question = asked(claude, request.question.id)
    assert question.question.questions == ("Which colour?",)
    wait_for(lambda: tasks.messages("one")[0].state == "in_turn", "the receipt", LONG)
    answer(claude, question, Answer(Verdict.ALLOW, "user:test", answers=("Blue",)))
    found = done(claude, task)

    assert (found.state, found.output, len(found.runs)) == ("idle", "Blue it is.", 1)
    assert tasks.messages("one")[0] == sent._replace(state=tasks.messages("one")[0].state, turn=1)
    assert tasks.messages("one")[0].state == "answered"
    assert (claude.root / ".swarm/workspaces" / found.session_id / "work/made").exists()
    assert said(claude, "and well, please") == 1
    assert said(claude, '"Which colour?"="Blue"') == 1


def test_a_message_is_said_once_over_the_death_of_the_supervisor(claude: ClaudeLab) -> None:
    """One was heard before the kill, one was not; a person's refusal is told."""
    prepared(claude, "claude")
    claude.api.script("paint it", ASKS, hold("never", say("Not heard.")), say("Taken up."), say("And more."))
    tasks = claude.swarm.tasks
    task = tasks.submit("- paint it", program="claude", role="builder", hold=True, task_id="one")
    request = asked(claude)
    tasks.message("one", "the first word")
    answer(claude, request, Answer(Verdict.DENY, "user:test", "not on a Friday"))
    wait_for(lambda: tasks.messages("one")[0].state == "in_turn", "the receipt", LONG)
    claude.api.heard("the first word")
    run = tasks.get("one").run
    assert run is not None
    os.kill(run.supervisor, signal.SIGSTOP)
    tasks.message("one", "the second word")
    os.kill(run.supervisor, signal.SIGKILL)

    found = done(claude, task)

    assert (found.state, found.runs[0].cause) == ("idle", "lost")
    assert [(str(one.state), one.turn) for one in tasks.messages("one")] == [("answered", 1)] * 2
    assert said(claude, "not on a Friday") == 1
    assert said(claude, "the first word") == 1
    assert said(claude, "the second word") == 1
    assert said(claude, "- paint it") == 1


def goes_into_a_pane_and_back(lab: AgentLab, program: str) -> None:
    """A turn without a terminal, one by hand in a pane, one without again: all in one conversation."""
    prepared(lab, program)
    lab.api.script("paint it green", say("Green it is."), say("By hand it is."), say("And well."))
    tasks = lab.swarm.tasks
    task = done(lab, tasks.submit("- paint it green", program=program, role="builder", hold=True, task_id="one"))

    taken = tasks.take("one")
    assert taken.pane is not None
    assert taken.pane.address == "builder@one"
    lab.until("builder", "idle", session="one")
    lab.say("builder", "do it by hand", session="one")
    lab.shows("builder", "By hand it is.", session="one")
    asked = lab.api.heard("do it by hand")
    assert "Green it is." in asked.text
    lab.until("builder", "idle", session="one")

    back = tasks.give_back("one")
    assert (back.state, back.pane) == ("idle", None)
    tasks.continue_("one", "and well, please")
    found = done(lab, task)

    assert (found.state, found.output) == ("idle", "And well.")
    assert found.runs[-1].resumed
    assert said(lab, "paint it green") == 1
    assert said(lab, "do it by hand") == 1


@pytest.mark.parametrize("program", ["codex", "gemini", "opencode"])
def test_it_goes_into_a_pane_and_back(agents: AgentLab, program: str) -> None:
    goes_into_a_pane_and_back(agents, program)


@pytest.mark.story
def test_claude_code_goes_into_a_pane_and_back(claude: ClaudeLab) -> None:
    goes_into_a_pane_and_back(claude, "claude")
