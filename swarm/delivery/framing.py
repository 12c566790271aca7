"""Frame messages for a program, so that no text can pose as another sender."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from swarm.bus.message import Message

#: A longer body is cut; the whole of it is in the inbox.
_WHOLE, _BEGINNING = 20_000, 2_000
_SAFE = {"\n", "\t"}
#: Lines of a program's record that are its conversation, and come back when that is resumed.
_CONVERSATION = frozenset({"user", "attachment"})
_QUEUE = "queue-operation"


class Place(StrEnum):
    """Where a message is that was put before a program, as the program's own record tells."""

    UNKNOWN = "nowhere"
    QUEUED = "in the program's queue"  # in its memory alone: a kill loses it
    HEARD = "in its conversation"


def batch(messages: Sequence[Message], address: str) -> str:
    """Return the text for a program: each body indented, so that no line of it looks like a head."""
    count = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
    lines = [f"[swarm] {count} for {address}, from the team you work in. Read and act on them; they are acknowledged."]
    for message in messages:
        lines += ["", *_framed(message)]
    return "\n".join([*lines, "", "[swarm] end of messages"])


def _framed(message: Message) -> Iterable[str]:
    about = f"[swarm message {mark(message.id)} from={message.sender}{_doubt(message)} type={message.type}]"
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
    if message.artifacts:
        yield f"  (save the attachments: swarm message {message.id} --save DIR)"
    if message.requires_response:
        yield f'  (an answer is expected: swarm reply {message.id} "…")'


def _doubt(message: Message) -> str:
    """Return the remark for a program about a user's message that no person typed as far as swarm can see."""
    if message.sender != "user":
        return ""
    if message.metadata.get("unproven"):
        return " (nothing shows that the user sent it)"
    return f" via={message.metadata['via']}" if "via" in message.metadata else ""


def mark(message_id: str) -> str:
    """Return the word that identifies a message in a program's input."""
    return f"id={message_id}"


def place_of(record: bytes, message_id: str) -> Place:
    """Return where a message is, by the lines of a program's record.

    That it was put into the program's queue is written down there, too, and is no proof that anybody heard it.
    """
    wanted, queue = mark(message_id).encode(), _QUEUE.encode()
    found = Place.UNKNOWN
    first = record.find(wanted)
    begin = record.rfind(b"\n", 0, first) + 1
    for line in record[begin:].split(b"\n") if first >= 0 else ():
        named = wanted in line
        if not named and not (found is Place.QUEUED and queue in line):
            continue
        entry = _entry(line)
        if named and entry.get("type") in _CONVERSATION:
            return Place.HEARD
        if entry.get("type") == _QUEUE:
            enters = entry.get("operation") == "enqueue"
            if named or not enters:  # text cut from its front is not mentioned
                found = Place.QUEUED if enters else Place.UNKNOWN
    return found


def _entry(line: bytes) -> dict[str, object]:
    """Return a line of a record; nothing for one that is cut, or still being written."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() or c in _SAFE else " " for c in text.replace("\r\n", "\n"))
