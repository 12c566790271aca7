"""What the state of an agent that waits says: the command, or the question, and the id that answers it."""

from __future__ import annotations

from typing import Any

import pytest

from swarm.agents import asked
from swarm.approvals.values import ASKS, Question
from swarm.programs.status import State, Status

pytestmark = pytest.mark.unit

WAITS = Status(State.WAITING, "for permission to use a tool", 7, ())


def put(tool: str, given: dict[str, Any]) -> dict[tuple[str, str], Question]:
    return {("fx", "builder"): Question("kqzmfr", "fx", "builder", tool, given)}


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("Bash", {"command": "rm -r build\n\x1b[2J"}, "for permission kqzmfr: Bash(rm -r build [2J)"),
        (ASKS, {"questions": [{"question": "Which colour?"}]}, "for an answer kqzmfr: Which colour?"),
    ],
)
def test_a_permission_is_named_as_such_and_a_question_as_a_question(
    tool: str, given: dict[str, Any], words: str
) -> None:
    found = asked.in_words(WAITS, put(tool, given), "fx", "builder")
    assert (found.state, found.detail, found.since_ms) == (State.WAITING, words, 7)


def test_who_does_not_wait_or_has_asked_nothing_keeps_its_words() -> None:
    idle = Status(State.IDLE, "It is green.", 7, ())
    assert asked.in_words(idle, put("Bash", {"command": "ls"}), "fx", "builder") is idle
    assert asked.in_words(WAITS, put("Bash", {"command": "ls"}), "fx", "other") is WAITS
