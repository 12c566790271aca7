"""The keyword arguments of every verb that sends a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class SendOptions(TypedDict, total=False):
    """Optional fields of a message. See ``Post.send``.

    Attributes:
        subject: one line.
        type: a word of yours; ``message`` by default.
        priority: ``interrupt``, ``high``, ``normal`` or ``low``.
        id: a message that is sent again under the same id is the same message.
        reply_to: id of the message that this one answers.
        expects_reply: the sender waits for an answer.
        deadline_ms: for so long.
        ttl_ms: after this time swarm no longer delivers it.
        attach: files; each is copied.
        metadata: further values of yours.
    """

    subject: str
    type: str
    priority: str
    id: str
    reply_to: str
    expects_reply: bool
    deadline_ms: int
    ttl_ms: int
    attach: Sequence[str | Path]
    metadata: Mapping[str, Any]
