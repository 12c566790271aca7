"""Requests of a task's program, while it works: answered by standing answers, its role's reviewer, or a person.

A request of a task in a worktree is one of its agent; any other is one of the task.  Without an answer it is denied.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.approvals import decide
from swarm.approvals.store import Approvals
from swarm.approvals.values import OF_TASKS, Question, Verdict
from swarm.machine import records
from swarm.machine.atomic import write_atomic
from swarm.permissions.paths import Place as Where
from swarm.project import codec
from swarm.project.errors import RecordProblem
from swarm.supervisor.talk import ANSWER, ASKED
from swarm.tasks import in_worktree, places
from swarm.tasks.folders import workspace
from swarm.tasks.values import Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from swarm.approvals.values import Answer
    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask

    Reviewers = Callable[[Path], Callable[[Question], Answer | None] | None]

_LARGEST = 4 << 20
_SUFFIX = ASKED.partition("%d")[2], ANSWER.partition("%d")[2]


def ask(bench: Bench, task: AgentTask, file: str, reviewer: Reviewers, goes_on: Callable[[], bool]) -> Answer | None:
    """Have a request answered that the supervisor wrote into a file, and put the answer beside it.

    Args:
        reviewer: finds the reviewer of a role by the run folder.
        goes_on: whether the supervisor still waits.

    Raises:
        RecordProblem: the file holds no request.
    """
    request = records.read(file, _LARGEST)
    if request is None or not isinstance(request.get("given"), dict) or not file.endswith(_SUFFIX[0]):
        raise RecordProblem(f"cannot read {file}: it holds no request")
    question, tree = _question(bench, task, str(request.get("tool")), request["given"])
    found = decide.decide(
        Approvals(bench.world.layout.approvals),
        question,
        review=reviewer(places.run_dir(bench, task, places.run_of(task))),
        goes_on=goes_on,
        timeout=bench.world.settings.tasks.answer_within,
        place=Where(str(tree), str(tree), bench.world.environ.get("HOME", ""), os.path.realpath),
    )
    answer = codec.encode({"schema": records.SCHEMA, **_leave(found, question)})
    write_atomic(file.removesuffix(_SUFFIX[0]) + _SUFFIX[1], answer, durable=False)
    return found


def is_of_supervisor(task: AgentTask) -> bool:
    """Whether the supervisor of a task's run started this process."""
    run = task.run
    return run is not None and run.supervisor == os.getppid() and places.is_supervised(run)


def _question(bench: Bench, task: AgentTask, tool: str, given: dict[str, Any]) -> tuple[Question, Path]:
    """Return a request, and where the program works."""
    session = in_worktree.session_of(bench, task) if task.place is Place.WORKTREE else None
    agent = session.agent(task.role) if session is not None else None
    if session is not None and agent is not None:
        generation = session.generation_of(agent)
        return Question("", session.name, agent.name, tool, given, generation=generation), in_worktree.tree_of(
            bench, task
        )
    tree = workspace.of(bench.world.layout, task).work
    return Question("", OF_TASKS, task.id, tool, given, generation=str(task.created_ms)), tree


def _leave(found: Answer | None, question: Question) -> dict[str, Any]:
    """Return what the supervisor tells the program."""
    if found is None or found.verdict is Verdict.WITHDRAWN:
        return {"given": None, "why": ""}
    if found.verdict is Verdict.DENY:
        return {"given": None, "why": found.reason or f"denied by {found.by}"}
    return {"given": question.with_answers(found.answers) if found.answers else question.given, "why": ""}
