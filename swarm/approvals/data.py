"""Permission requests and questions as data for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit.words import iso

if TYPE_CHECKING:
    from swarm.approvals.values import Approval


def approval_data(one: Approval) -> dict[str, Any]:
    """Return a question with its answer for machines."""
    question, answer = one.question, one.answer
    return {
        "id": question.id,
        "session": question.session,
        "agent": question.agent,
        "state": str(one.standing),
        "tool": question.tool,
        "input": question.given,
        "cwd": question.cwd,
        "summary": question.summary,
        "asked_at": iso(question.asked_ms),
        "answered_at": iso(answer.at_ms) if answer else None,
        "by": answer.by if answer else "",
        "reason": answer.reason if answer else "",
        "questions": list(question.questions),
        "answers": list(answer.answers) if answer else [],
        "always": answer.always if answer else False,
        "rule": answer.rule if answer else "",
        "revoked_at": iso(one.revoked.at_ms) if one.revoked else None,
        "revoked_by": one.revoked.by if one.revoked else "",
    }
