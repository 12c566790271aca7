"""Bring the record of a task up to what is so: its run is over, was never begun, or is lost.

Any process may do that, at any time, below the lock of the tasks.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.programs import turns
from swarm.programs.turns import Kind
from swarm.tasks import evidence, places, secrecy
from swarm.tasks.bench import program_of, with_run
from swarm.tasks.evidence import LOST, NEVER, Evidence, Stand
from swarm.tasks.held import messages, taking
from swarm.tasks.values import IN_PANE, FailureType, Place, TaskFailure, TaskState, TokenUsage

if TYPE_CHECKING:
    from typing import Any

    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask, TaskRun

_TYPES = {
    Kind.RETRYABLE: FailureType.PROGRAM,
    Kind.FATAL: FailureType.PROGRAM,
    Kind.RATE_LIMITED: FailureType.RATE_LIMITED,
    Kind.TIMEOUT: FailureType.TIMEOUT,
    Kind.BUDGET: FailureType.BUDGET,
    Kind.NOT_STARTED: FailureType.NOT_STARTED,
    Kind.STOPPED: FailureType.INTERRUPTED,
    Kind.NO_BOX: FailureType.SANDBOX,
}
_COMPLETED = TaskState.COMPLETED
_MAY_PASS = frozenset({Kind.RETRYABLE, Kind.RATE_LIMITED})
#: A supervisor that was lost is no failure of the task; but one that is lost again and again is.
_MOST_LOST = 5
_LONGEST_PAUSE, _RATE_LIMIT_TIMES = 600.0, 10
#: After so long a cancel that nobody carried out is carried out again.
_CANCEL_AGAIN_MS = 12_000


def settle(bench: Bench, task: AgentTask) -> AgentTask:
    """Return a task as it is now; its record says the same. The caller holds the lock."""
    if task.state is TaskState.STARTING:
        task = places.not_started(bench, task)
    if task.state in (TaskState.WORKING, TaskState.CANCELLING):
        task = _settle_run(bench, task)
    if task.state is TaskState.INTERRUPTED:
        task = _take_up(bench, task)
    if task.state is TaskState.TAKEN and places.is_removed(bench, task):
        return finish(bench, task, TaskState.CANCELLED, "its session was removed", pane=None)
    if task.state in IN_PANE:
        task = taking.conclude(bench, task)
    if task.state is TaskState.IDLE:
        task = _settle_held(bench, task)
    return task


def _settle_held(bench: Bench, task: AgentTask) -> AgentTask:
    last = task.last_event.time_ms if task.last_event else task.created_ms
    limit = bench.world.settings.tasks.idle_limit
    if _now_ms() - last <= limit:
        return task
    return finish(bench, task, TaskState.COMPLETED, "it was held for longer than tasks.idle_limit")


def _settle_run(bench: Bench, task: AgentTask) -> AgentTask:
    run = task.run
    if run is None:  # its record was written by somebody else
        return _without_run(bench, task)
    if places.is_removed(bench, task):
        return _removed(bench, task)
    found = evidence.look(run, places.run_dir(bench, task, run))
    if found.stand is Stand.NEVER:
        return _never_begun(bench, task, run)
    if found.stand is Stand.LOST:
        return _lost(bench, task, run, found)
    if found.stand is Stand.OVER:
        return _over(bench, task, run, found)
    if (
        task.state is TaskState.CANCELLING
        and task.last_event
        and _now_ms() - task.last_event.time_ms > _CANCEL_AGAIN_MS
    ):
        places.ask_to_end(run)
    return task


def _without_run(bench: Bench, task: AgentTask) -> AgentTask:
    words = "its record names no run"
    if task.state is TaskState.CANCELLING:
        return finish(bench, task, TaskState.CANCELLED, words)
    return bench.store.change(task, TaskState.INTERRUPTED, "interrupted", words, operation="")


def _removed(bench: Bench, task: AgentTask) -> AgentTask:
    """End a task whose session the user removed; a cleanup saved its work."""
    task = bench.store.change(task, TaskState.CANCELLING, "cancelling") if task.state is TaskState.WORKING else task
    return finish(bench, task, TaskState.CANCELLED, "its session was removed", operation="")


def _never_begun(bench: Bench, task: AgentTask, run: TaskRun) -> AgentTask:
    """Queue a task again whose supervisor ended at its gate: its program has not begun."""
    places.forget_launch(bench, task, run)
    if task.state is TaskState.CANCELLING:
        return finish(bench, task, TaskState.CANCELLED, "before its program began", operation="")
    task = replace(task, runs=with_run(task, run._replace(cause=NEVER, ended_ms=_now_ms())), operation="")
    if sum(one.cause == NEVER for one in task.runs) > _MOST_LOST:
        why = TaskFailure(FailureType.NOT_STARTED, f"its supervisor ended {_MOST_LOST + 1} times before it began")
        return finish(bench, task, TaskState.FAILED, why.message, failure=why)
    return bench.store.change(task, TaskState.QUEUED, "requeued", "its program had not begun")


def _lost(bench: Bench, task: AgentTask, run: TaskRun, found: Evidence) -> AgentTask:
    """End what a lost supervisor left; a result that is there counts all the same."""
    places.end_rest(bench, task, run)
    places.take_in(bench, task)
    ended = turns.Ended(LOST)
    outcome = _outcome(bench, task, run, ended)
    found = found._replace(ended=ended, ended_ms=_now_ms())
    if task.state is TaskState.CANCELLING or outcome.kind is Kind.DONE:
        return _over(bench, task, run, found)
    failure = TaskFailure(FailureType.INTERRUPTED, "its supervisor is gone", retryable=True)
    task = _with_receipts(bench, replace(task, **_after(task, run, found, outcome, failure)))
    return bench.store.change(task, TaskState.INTERRUPTED, "interrupted", failure.message)


def _over(bench: Bench, task: AgentTask, run: TaskRun, found: Evidence) -> AgentTask:
    if found.ended is None:
        raise AssertionError("a run is over without an end")
    refused = places.take_in(bench, task)
    outcome = _outcome(bench, task, run, found.ended)
    kind = outcome.kind
    failure = None if kind is Kind.DONE else _failure(task, outcome)
    known = _with_receipts(bench, replace(task, **_after(task, run, found, outcome, failure)))
    places.note_conversation(bench, known)
    if task.state is TaskState.CANCELLING:
        return finish(bench, known, TaskState.CANCELLED, found.ended.cause)
    if failure is None:
        return _hold(bench, known, refused) if task.hold else finish(bench, known, _COMPLETED, refused)
    if kind in _MAY_PASS and _may_try_again(known):
        return _retry(bench, known, outcome)
    if kind is Kind.STOPPED:
        return _stopped(bench, known, found.ended.cause)
    return finish(bench, known, TaskState.FAILED, failure.message, failure=failure)


def _with_receipts(bench: Bench, task: AgentTask) -> AgentTask:
    """Return a task whose run is over, with what became of the messages to it."""
    if not messages.open_ones(bench, task):
        return task
    return messages.settled(bench, task, places.heard(bench, task))


def _hold(bench: Bench, task: AgentTask, words: str) -> AgentTask:
    """Hold a task whose turn is over, unless messages came that no turn has yet: they are the next prompt.

    Args:
        words: what is to be said of the turn.
    """
    more = messages.as_prompt(bench, task)
    if more is None:
        return bench.store.change(task, TaskState.IDLE, "held", words)
    return bench.store.change(task, TaskState.QUEUED, "continued", "with messages that came meanwhile", **more)


def _outcome(bench: Bench, task: AgentTask, run: TaskRun, ended: turns.Ended) -> evidence.Outcome:
    """Return what came of a run; no credential is in that, nor in what is kept of its output."""
    folder = places.streams(bench, task, run)
    outcome = evidence.judge(program_of(task), folder, ended)
    secrecy.clear(bench.store, task, folder)
    return secrecy.without(bench.store, task, outcome)


def _stopped(bench: Bench, task: AgentTask, cause: str) -> AgentTask:
    """Settle a task whose program was ended, and not by a cancel."""
    if task.place is Place.WORKTREE:  # who stops its agent, cancels it
        task = bench.store.change(task, TaskState.CANCELLING, "cancelling", "its agent was stopped")
        return finish(bench, task, TaskState.CANCELLED, cause)
    return _take_up(bench, bench.store.change(task, TaskState.INTERRUPTED, "interrupted", f"it was ended: {cause}"))


def _after(
    task: AgentTask, run: TaskRun, found: Evidence, outcome: evidence.Outcome, failure: TaskFailure | None
) -> dict[str, Any]:
    """Return the fields of a task that change with the end of a run."""
    ended, said = found.ended or turns.Ended(LOST), outcome.said
    now = run._replace(
        started_ms=found.started_ms or run.started_ms,
        ended_ms=found.ended_ms,
        pid=found.pid,
        cause=ended.cause,
        exit_code=ended.code,
        signal=ended.signal,
        failure=failure,
    )
    before = TokenUsage() if said.sum else task.usage
    usage = (
        TokenUsage(before.input + said.input, before.output + said.output) if said.input or said.output else task.usage
    )
    return {
        "runs": with_run(task, now),
        "operation": "",
        "output": said.text or task.output,
        "exit_code": ended.code,
        "usage": usage,
        "conversation": said.conversation or task.conversation,
    }


def _failure(task: AgentTask, outcome: evidence.Outcome) -> TaskFailure:
    kind, words = outcome.kind, outcome.why
    if kind is Kind.TIMEOUT:
        words = f"Task exceeded timeout of {task.timeout:g} seconds"
    if kind is Kind.BUDGET:
        words = "it used up its budget"
    return TaskFailure(_TYPES[kind], words or f"{task.program} {kind}", retryable=kind in _MAY_PASS)


def _may_try_again(task: AgentTask) -> bool:
    """Whether another try is left, and does not do twice what the program cannot take up again."""
    return _tried(task) < task.tries and (program_of(task).speaks or task.repeatable)


def _retry(bench: Bench, task: AgentTask, outcome: evidence.Outcome) -> AgentTask:
    """Queue a task for another try, after a pause."""
    tried = _tried(task)
    pause = bench.world.settings.tasks.retry_pause * 2 ** (tried - 1)
    if outcome.kind is Kind.RATE_LIMITED:
        pause = outcome.said.wait or pause * _RATE_LIMIT_TIMES
    pause = min(pause, max(_LONGEST_PAUSE, outcome.said.wait)) * random.uniform(1, 1.1)  # noqa: S311  # no secret
    words = f"try {tried} of {task.tries}: {outcome.why}; again in {pause:.0f} s"
    return bench.store.change(task, TaskState.QUEUED, "retry", words, due_ms=_now_ms() + int(pause * 1000))


def _take_up(bench: Bench, task: AgentTask) -> AgentTask:
    """Queue an interrupted task again, if that does nothing twice."""
    failures = [one.failure for one in task.runs if one.turn == task.turn and one.failure is not None]
    lost = sum(one.type is FailureType.INTERRUPTED for one in failures)
    if lost > _MOST_LOST:
        why = TaskFailure(FailureType.INTERRUPTED, f"it was interrupted {lost} times")
        return finish(bench, task, TaskState.FAILED, why.message, failure=why)
    if program_of(task).speaks or task.repeatable:
        return bench.store.change(task, TaskState.QUEUED, "requeued", "it was interrupted")
    words = f"it was interrupted, and {task.program} keeps no conversation that could be taken up"
    return finish(bench, task, TaskState.FAILED, words, failure=TaskFailure(FailureType.INTERRUPTED, words))


def finish(bench: Bench, task: AgentTask, state: TaskState, detail: str = "", **fields: Any) -> AgentTask:
    """Bring a task into one of its last states."""
    done = bench.store.change(task, state, str(state), detail, ended_ms=_now_ms(), due_ms=0, **fields)
    bench.store.close(done.id)
    return done


def _tried(task: AgentTask) -> int:
    """Return how often the present turn was tried; what nobody saw end, or begin, is no try."""
    return sum(one.turn == task.turn and one.cause not in (LOST, NEVER) for one in task.runs)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
