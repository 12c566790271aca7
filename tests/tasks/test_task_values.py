"""The states of a task: one table, every pair of it; and what came of a turn, by the evidence in its order."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from swarm.programs.turns import Ended, Kind, Said, by_status, judge
from swarm.project.errors import RecordProblem
from swarm.project.layout import Layout
from swarm.project.model import Boxed
from swarm.tasks import record
from swarm.tasks.store import Store
from swarm.tasks.values import (
    FINAL,
    TRANSITIONS,
    AgentTask,
    FailureType,
    InPane,
    Place,
    TaskEvent,
    TaskFailure,
    TaskRun,
    TaskState,
    TokenUsage,
    TurnReceipt,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component
#: Each state with all that may follow; whatever is not here must be refused.
FOLLOWS = {
    "queued": {"starting", "failed", "cancelled"},
    "starting": {"working", "queued", "failed"},
    "working": {"idle", "completed", "failed", "queued", "cancelling", "interrupted"},
    "idle": {"queued", "taking", "completed", "cancelled"},
    "taking": {"taken", "idle"},
    "taken": {"returning", "cancelled"},
    "returning": {"idle", "taken"},
    "cancelling": {"cancelled"},
    "interrupted": {"queued", "failed", "cancelled"},
    "completed": set[str](),
    "failed": set[str](),
    "cancelled": set[str](),
}


def task(**changes: object) -> AgentTask:
    made = AgentTask("one", TaskState.QUEUED, ("do it",), "demo", "s", "c", 1)
    return replace(made, **changes)  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(("old", "new"), list(product(TaskState, TaskState)))
def test_a_state_is_followed_by_those_of_the_table_alone(tmp_path: Path, old: TaskState, new: TaskState) -> None:
    store = Store(Layout(tmp_path))
    (tmp_path / ".swarm").mkdir()
    with store.accepting(5):
        there = store.add(task(state=old), {})

    if new in FOLLOWS[old]:
        done = store.change(there, new, "moved")
        assert (done.state, store.get("one").state) == (new, new)
        assert [one.number for one in store.events(done)] == [1, 2]
    else:
        with pytest.raises(AssertionError, match="is not followed by"):
            store.change(there, new, "moved")
        assert store.get("one") == there


def test_the_table_is_the_one_of_the_room() -> None:
    assert {str(old): {str(new) for new in following} for old, following in TRANSITIONS.items()} == FOLLOWS
    assert {"completed", "failed", "cancelled"} == FINAL
    hidden = ("starting", "interrupted", "taking", "taken", "returning")
    assert {state: task(state=state).shown for state in (*hidden, "idle")} == {
        "starting": "working",
        "taking": "working",
        "taken": "working",
        "returning": "working",
        "interrupted": "working",
        "idle": "idle",
    }


def test_a_record_comes_back_whole() -> None:
    failure = TaskFailure(FailureType.TIMEOUT, "late", retryable=True)
    run = TaskRun("op", 1, True, 2, 3, 4, 5, "boot", 6, "exited", 7, None, failure)
    whole = AgentTask(
        "one", TaskState.WORKING, ("a", "b\udc80"), "command", "s", "c", 1, ("x", "y"), Place.WORKTREE, "m", "r", "a",
        "me", "g", 1.5, True, 2, True, "p", 3, 4, 5, "op", ("op",), (run,), (TurnReceipt("m", 1),),
        InPane("s", "a", "op", 1, 2, "boot"), "out", 9, TokenUsage(1, 2), failure, 4,
        TaskEvent(4, 5, "started", TaskState.WORKING, "d", "op"), Boxed("no", ("/a",), disk=7), "/w", "/s",
    )  # fmt: skip
    defaults = {one.name for one in fields(AgentTask) if getattr(whole, one.name) == one.default}

    assert defaults == set()
    assert record.from_bytes(record.to_bytes(whole), "it") == whole


@pytest.mark.parametrize("change", [b'"state": "odd"', b'"runs": 3', b'"hold": "yes"', b'"more": 1, "state": "queued"'])
def test_a_record_that_is_none_is_refused(change: bytes) -> None:
    name = change.split(b'"')[1]
    data = record.to_bytes(task())
    start = data.index(b'"' + (b"state" if name == b"more" else name) + b'":')
    end = data.index(b", ", start)

    with pytest.raises(RecordProblem, match="cannot read it"):
        record.from_bytes(data[:start] + change + data[end:], "it")


FAIL = Said(Kind.FATAL, message="no")


@pytest.mark.parametrize(
    ("ended", "said", "err", "speaks", "kind"),
    [
        (Ended("stopped", 0), Said(Kind.DONE), "", True, Kind.STOPPED),
        (Ended("hangup", None, 1), Said(), "", True, Kind.STOPPED),
        (Ended("timeout", 0), Said(Kind.DONE), "", True, Kind.TIMEOUT),
        (Ended("budget", 0), Said(), "", True, Kind.BUDGET),
        (Ended("exited", 1), Said(Kind.DONE), "rate limit", True, Kind.DONE),
        (Ended("exited", 0), FAIL, "", True, Kind.FATAL),
        (Ended("lost"), Said(Kind.DONE), "", True, Kind.DONE),
        (Ended("lost"), Said(), "", True, Kind.RETRYABLE),
        (Ended("exited", 0), Said(), "", False, Kind.DONE),
        (Ended("exited", 0), Said(), "", True, Kind.RETRYABLE),
        (Ended("exited", 1), Said(), "", True, Kind.RETRYABLE),
        (Ended("exited", 1), Said(), "", False, Kind.FATAL),
        (Ended("exited", 2), Said(), "Rate Limit", True, Kind.FATAL),
        (Ended("exited", 124), Said(), "", False, Kind.RETRYABLE),
        (Ended("exited", 126), Said(), "", True, Kind.NOT_STARTED),
        (Ended("exited", 127), Said(), "", True, Kind.NOT_STARTED),
        (Ended("exited", 1), Said(), "Error: RATE LIMIT reached", True, Kind.RATE_LIMITED),
        (Ended("exited", 1), Said(), "exceeds the Context Window", True, Kind.FATAL),
        (Ended("exited", 1), Said(), "Invalid API key", True, Kind.FATAL),
        (Ended("exited", 1), Said(), "Network Error", False, Kind.RETRYABLE),
        (Ended("exited", 1), Said(), "request timeout", False, Kind.RETRYABLE),
        (Ended("signal", None, 9), Said(), "", False, Kind.RETRYABLE),
    ],
)
def test_a_turn_is_judged_by_the_evidence_in_its_order(
    ended: Ended, said: Said, err: str, speaks: bool, kind: Kind
) -> None:
    assert judge(ended, said, err, speaks=speaks)[0] is kind


def test_why_it_failed_is_one_line_of_the_best_words_there_are() -> None:
    assert judge(Ended("exited", 1), FAIL, "noise", speaks=True)[1] == "no"
    assert judge(Ended("exited", 1), Said(), "first\nlast\x1b[31m\n\n", speaks=True)[1] == "last [31m"
    assert judge(Ended("exited", 0), Said(), "", speaks=True)[1] == "it ended without a result (exit status 0)"
    assert judge(Ended("signal", None, 9), Said(), "", speaks=True)[1] == "signal 9"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(None, "retryable"), (500, "retryable"), (529, "retryable"), (408, "retryable"), (429, "rate_limited")]
    + [(one, "fatal") for one in (400, 401, 403, 404)],
)
def test_an_answer_of_the_api_says_whether_to_try_again(status: int | None, kind: str) -> None:
    assert by_status(status) == kind
