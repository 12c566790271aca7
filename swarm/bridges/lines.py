"""The lines of JSON between swarm and a bridge's command, one object a line, with a version in each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm.approvals.values import Question
    from swarm.bus.message import Message

VERSION = 1
#: A longer line of a command is none.
LONGEST = 1 << 20


def line(what: str, /, **fields: Any) -> bytes:
    """Return one line."""
    return (json.dumps({"v": VERSION, "type": what, **fields}, ensure_ascii=True) + "\n").encode("ascii")


def message(one: Message) -> bytes:
    """Return the line of a message to the user, or to the bridge."""
    return line(
        "message",
        id=one.id,
        time_ms=one.time_ms,
        sender=one.sender,
        to=one.to,
        subject=one.subject,
        body=one.body,
        kind=one.type,
        priority=one.priority,
        in_reply_to=one.in_reply_to,
        wants_reply=one.requires_response,
    )


def approval(question: Question, code: str) -> bytes:
    """Return the line of a request; the code is empty for a bridge that may not answer."""
    return line(
        "approval",
        id=question.id,
        sender=question.who,
        summary=question.summary,
        tool=question.tool,
        questions=list(question.questions),
        **({"code": code} if code else {}),
    )


def read(data: bytes) -> dict[str, Any]:
    """Read a line of a command.

    Raises:
        ValueError: it is none.
    """
    found = json.loads(data)
    if not isinstance(found, dict) or found.get("v") != VERSION or not isinstance(found.get("type"), str):
        raise ValueError('it is no object with "v": 1 and a type')
    return found
