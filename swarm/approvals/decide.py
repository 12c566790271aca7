"""Decide a permission request: standing answers, the reviewer, then a person.

    the program asks ─► a standing answer? ─► the reviewer? ─► a person, from any terminal ─► the program

Everything that goes wrong ends without an answer, and then the program asks in its own pane.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.approvals.errors import AlreadyAnswered
from swarm.approvals.values import GRANT, USER, Answer, Approval, Question, Verdict, covers, standing_answer
from swarm.kit import files
from swarm.kit.errors import SwarmError, UsageProblem
from swarm.kit.words import count
from swarm.machine import own, processes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.approvals.store import Approvals
    from swarm.permissions.paths import Place

_LOOK_EVERY = 0.1


def look(store: Approvals, problems: list[SwarmError] | None = None) -> tuple[Approval, ...]:
    """Return every question as it stands, oldest first.

    Args:
        problems: is told of the records that cannot be read; they hide no others.
    """
    boot = processes.boot_id()
    found = store.all()
    if problems is not None:
        problems += found.problems
    return tuple(
        one if one.answer is not None else replace(one, waits=_waits(one.question, boot)) for one in found.records
    )


def look_in(state: Path, *, everything: bool = False, problems: list[SwarmError] | None = None) -> tuple[Approval, ...]:
    """Return the open requests of the repository with this ``.swarm`` folder, without git."""
    from swarm.approvals.store import Approvals

    own.trust(str(state))
    with files.os_errors("cannot read the approvals"):
        found = look(Approvals(state / "approvals"), problems)
    return tuple(one for one in found if everything or one.waits)


def _waits(question: Question, boot: str) -> bool:
    return question.boot == boot and processes.is_alive(question.pid, question.pid_start)


def answer(store: Approvals, question_id: str, given: Answer, place: Callable[[Question], Place]) -> Approval:
    """Answer a question that waits.

    Args:
        place: says where a question was asked, for a rule to be compared with it.

    Raises:
        ApprovalNotFound, Ambiguous, AlreadyAnswered: also when nobody waits for it any more.
        UsageProblem: it asks for words and got none, or the other way round; a rule is not about it.
    """
    question, before = store.get(question_id)
    if before is not None:
        raise AlreadyAnswered(f"cannot answer {question.id}: {_how(before)}")
    if not _waits(question, processes.boot_id()):
        raise AlreadyAnswered(f"cannot answer {question.id}: {question.agent} no longer waits for it")
    _check_words(question, given)
    if given.rule and not covers(given.rule, given.verdict, question, place(question)):
        verb = "deny" if given.verdict is Verdict.DENY else "approve"
        raise UsageProblem(
            f"cannot use the rule {given.rule[:60]!a} for {question.id}: it does not match {question.summary[:60]!a}",
            hint=f"to cover identical requests: swarm {verb} {question.id} --always",
        )
    stamped = replace(given, at_ms=_now_ms())
    store.answer(question.id, stamped)
    return Approval(question, stamped, waits=False)


def revoke(store: Approvals, question_id: str, given: Answer) -> Approval:
    """Revoke a standing answer; its earlier effects stay.

    Raises:
        ApprovalNotFound, Ambiguous, AlreadyAnswered: it was taken back before.
        UsageProblem: it held only once.
    """
    question, before = store.get(question_id)
    if before is None or not before.always:
        how = "it has no answer yet" if before is None else f"{_how(before)}, for that one time"
        raise UsageProblem(f"cannot revoke {question.id}: {how}", hint="swarm approvals --standing")
    stamped = replace(given, at_ms=_now_ms())
    store.revoke(question.id, stamped)
    return Approval(question, before, waits=False, revoked=stamped)


def _check_words(question: Question, given: Answer) -> None:
    asked = question.questions
    if given.verdict is Verdict.ALLOW and len(given.answers) != len(asked):
        if not asked:
            raise UsageProblem(
                f"cannot answer {question.id} in words: it asks for permission to use {question.tool[:40]!a}"
            )
        example = " ".join("--answer '…'" for _ in asked)
        wanted = f"{count(len(asked), 'question')}, and {count(len(given.answers), 'answer')} given"
        raise UsageProblem(f"cannot approve {question.id}: {wanted}", hint=f"swarm approve {question.id} {example}")
    if asked and given.always:
        raise UsageProblem(f"cannot answer {question.id} for always: it is a question to a person")


def _how(answer: Answer) -> str:
    done = {Verdict.ALLOW: "it was allowed", Verdict.DENY: "it was denied"}.get(answer.verdict, "it is over")
    return f"{done} by {answer.by}"


def decide(
    store: Approvals,
    question: Question,
    *,
    review: Callable[[Question], Answer | None] | None,
    goes_on: Callable[[], bool],
    timeout: float,
    place: Place | None = None,
) -> Answer | None:
    """Make a request and wait for its answer; None without one.

    Args:
        review: the reviewer of the role; None when it has none, or when it leaves it to a person.
        goes_on: whether the program still waits.
        timeout: seconds.
    """
    asked = replace(question, asked_ms=_now_ms(), cwd=place.cwd if place else question.cwd, **_me())
    standing = store.standing(asked)
    person = bool(asked.questions or standing.problems)  # an answer that cannot be read may have been a denial
    known = standing_answer(standing.records, asked, place) if not person else None
    if known is not None:
        return _settle(store, store.ask(asked), known)
    put = store.ask(asked)  # before the reviewer: readers see meanwhile that a decision is under way
    try:
        given = review(put) if review is not None and not person else None
        if given is not None:
            return _settle(store, put, given)
        return _wait(store, put, goes_on, time.monotonic() + timeout)
    except BaseException:
        _withdraw(store, put, "swarm was interrupted")
        raise


def _settle(store: Approvals, put: Question, given: Answer) -> Answer | None:
    """Record an answer, unless a person answered first."""
    try:
        store.answer(put.id, replace(given, at_ms=_now_ms()))
    except AlreadyAnswered:
        return store.answer_of(put.id)
    return given


def _wait(store: Approvals, put: Question, goes_on: Callable[[], bool], deadline: float) -> Answer | None:
    while (found := store.answer_of(put.id)) is None:
        left = deadline - time.monotonic()
        if left <= 0 or not goes_on():
            reason = "answered in the pane, or the turn ended" if left > 0 else "the answer did not come in time"
            return _withdraw(store, put, reason)
        time.sleep(min(_LOOK_EVERY, left))
    return found


def _withdraw(store: Approvals, put: Question, reason: str) -> Answer | None:
    """Close a request; an answer that came at the last moment counts."""
    try:
        store.answer(put.id, Answer(Verdict.WITHDRAWN, "program", reason, at_ms=_now_ms()))
    except AlreadyAnswered:
        return store.answer_of(put.id)
    except (SwarmError, OSError):
        return None
    return None


def by_user(name: str) -> str:
    """Return the name of the answering person for the record."""
    return f"{USER}:{name}" if name else USER


def by_grant(name: str) -> str:
    """Return how a program is written down that answers by a grant of the user's."""
    return f"{GRANT}:{name}"


def _me() -> dict[str, Any]:
    import os

    pid = os.getpid()
    return {"pid": pid, "pid_start": processes.start_of(pid) or 0, "boot": processes.boot_id()}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
