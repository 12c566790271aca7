"""Messages as they are put before a program: framed so that none can pretend to be another, or swarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swarm.domain.message import Message

#: A longer body is cut; the whole of it is in the inbox.
_WHOLE, _BEGINNING = 20_000, 2_000
_SAFE = {"\n", "\t"}


def batch(messages: Sequence[Message], address: str) -> str:
    """Return what a program is given to read: each body indented, so that no line of it is a head."""
    count = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
    lines = [f"[swarm] {count} for {address}, from the team you work in. Read and act on them; they are acknowledged."]
    for message in messages:
        lines += ["", *_framed(message)]
    return "\n".join([*lines, "", "[swarm] end of messages"])


def _framed(message: Message) -> Iterable[str]:
    about = f"[swarm message {mark(message.id)} from={message.sender} type={message.type}]"
    yield about
    if message.subject:
        yield f"  subject: {_clean(message.subject).replace(chr(10), ' ')}"
    body = _clean(message.body)
    cut = len(body) > _WHOLE
    for line in (body[:_BEGINNING] if cut else body).split("\n"):
        yield f"  {line}"
    if cut:
        yield f"  (cut: {len(body)} characters in all; read the whole with: swarm message {message.id})"
    for artifact in message.artifacts:
        yield f"  attached: {_clean(str(artifact.get('name') or artifact.get('sha256') or '?'))}"
    if message.requires_response:
        yield f'  (an answer is expected: swarm send --reply-to {message.id} "…")'


def mark(message_id: str) -> str:
    """Return the word by which a message is found again in what a program was given."""
    return f"id={message_id}"


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() or c in _SAFE else " " for c in text.replace("\r\n", "\n"))
