"""Requests of waiting agents by their states: the command and the id that answers each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.approvals import decide
from swarm.kit.errors import SwarmError
from swarm.machine.run_folder.program_facts import one_line
from swarm.programs.status import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.approvals.values import Question
    from swarm.programs.status import Status
    from swarm.project.world import World


def open_questions(world: World) -> dict[tuple[str, str], Question]:
    """Return each agent's oldest open question, by session and agent."""
    from swarm.approvals.store import Approvals

    try:
        found = decide.look(Approvals(world.layout.approvals), problems=[])
    except (SwarmError, OSError):  # `swarm approvals` says why
        return {}
    return {(one.question.session, one.question.agent): one.question for one in reversed(found) if one.waits}


def in_words(status: Status, questions: Mapping[tuple[str, str], Question], session: str, agent: str) -> Status:
    """Add the agent's question to a state, if another terminal can answer it."""
    question = questions.get((session, agent)) if status.state is State.WAITING else None
    if question is None:
        return status
    words = "for an answer" if question.questions else "for permission"
    about = "; ".join(question.questions) or question.summary
    return status._replace(detail=one_line(f"{words} {question.id}: {about}"))
