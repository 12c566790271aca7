"""Notices about missed deadlines, sent once by the first process that notices.

    note it ─► send the message ─► its time is over ─► who did not answer? ─► notice, with an id of its own ─► forget

Who looks: the supervisors of the sender and of the recipients, everybody who takes messages, and every command that
changes something.  Two of them send the same notice, and so it is one.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.errors import InboxNotFound
from swarm.bus.message import POSTMASTER, Message, box_of
from swarm.bus.notices import send_notice
from swarm.kit.errors import SwarmError
from swarm.machine import records
from swarm.machine.run_folder import runfiles
from swarm.supervisor import awaited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.bus.protocol import PostBus
    from swarm.project.world import World

NOTICE = "notice"
#: Of a note: it is about being taken, not about an answer. No message id ends so.
_LIFE, _LIFE_END = "life", "~life"
_MOMENT_MS = 1000
#: So much of a subject stands in the notice.
_SUBJECT = 200


class Reply(NamedTuple):
    """The state of an expected answer.

    Attributes:
        due_ms: when it is expected, by the time of day; 0: any time.
        overdue: there is none, and the time is over.
        answer: id of the first answer; empty: there is none.
        late: it came after the time.
    """

    due_ms: int
    overdue: bool
    answer: str = ""
    late: bool = False


def folder_of(messages: str) -> str:
    """Return where messages are noted that wait for an answer."""
    return f"{messages}/{awaited.FOLDER}"


def note(messages: str, message: Message, to: Sequence[str]) -> None:
    """Write down that a message, about to be sent, is to be answered within its time; sent again it stays the first."""
    about = {
        "subject": message.subject[:_SUBJECT],
        "thread_id": message.thread_id or message.id,
        "generation": message.sender_generation,
        "within_ms": message.deadline_ms,
    }
    _write(messages, message.id, awaited.record(message.sender, list(to), message.deadline_ms, about))


def note_life(messages: str, message: Message, to: Sequence[str]) -> None:
    """Write down that a message, about to be sent, is to be taken within its time to live."""
    # A moment later: its time begins when it is sent, which is still to come.
    record = awaited.record(message.sender, list(to), message.ttl_ms + _MOMENT_MS, {_LIFE: True})
    _write(messages, message.id + _LIFE_END, record)


def _write(messages: str, name: str, record: dict[str, object]) -> None:
    import json

    from swarm.kit import files as fsio

    path = Path(folder_of(messages), awaited.name_of(name))
    if fsio.exists(path):
        return
    fsio.make_private_dir(path.parent.parent)
    fsio.make_private_dir(path.parent)
    fsio.write_atomic(path, json.dumps({"schema": records.SCHEMA, **record}).encode() + b"\n")


def tell_all(world: World) -> int:
    """Notify every sender whose answer is overdue; return the number of messages."""
    from swarm.messages.inboxes import bus_of

    messages = str(world.layout.state / "messages")
    if not Path(folder_of(messages)).is_dir():
        return 0
    bus = bus_of(world)
    try:
        return notify_senders(bus, messages)
    finally:
        bus.close()


def notify_senders(bus: PostBus, messages: str) -> int:
    """Notify every sender whose answer is overdue. Never fails: a failed notice is sent later."""
    count = 0
    for one in awaited.read_all(folder_of(messages)):
        if one.left_ms > 0:
            continue
        with suppress(KeyError, ValueError):  # no note of ours goes, or it would be tried for ever
            try:
                count += _expire(bus, one) if one.about.get(_LIFE) else _tell_of(bus, one)
            except (SwarmError, OSError):
                continue
        forget(messages, one.id)
    return count


def left_ms(messages: str, sender: str) -> int | None:
    """Return how long it is until the next answer to a sender becomes overdue; None when none is awaited."""
    mine = [one.left_ms for one in awaited.read_all(folder_of(messages)) if one.people[:1] == [sender]]
    return min(mine, default=None)


def forget(messages: str, message_id: str) -> None:
    """Take a note away: its time is over, or the message was not sent."""
    runfiles.remove(folder_of(messages), awaited.name_of(message_id))


def _expire(bus: PostBus, one: awaited.Awaited) -> int:
    """Give up an expired message; the bus notifies its sender."""
    for address in one.people[1:]:
        with suppress(InboxNotFound):  # it was cleaned up
            bus.expire(address)
    return 0


def _tell_of(bus: PostBus, one: awaited.Awaited) -> bool:
    silent = _silent(bus, one)
    if not silent:
        return False
    notice = _notice(one, silent)
    receipt = send_notice(bus, notice)
    return receipt is not None and not receipt.duplicate


def _silent(bus: PostBus, one: awaited.Awaited) -> list[str]:
    """Return the recipients without an answer, also those cleaned up since."""
    sender, *to = one.people
    got = {trace.stored.message.to: trace.stored.message for trace in bus.find(one.id)}
    boxes = set(bus.addresses())
    return [
        who
        for who in to
        if (got[who].sender == sender and not _answers(bus, got[who]) if who in got else box_of(who) not in boxes)
    ]


def _notice(one: awaited.Awaited, silent: Sequence[str]) -> Message:
    from hashlib import sha256

    from swarm.kit.scalars import show_milliseconds

    about = {key: str(value) for key, value in one.about.items()}
    who = " and ".join([", ".join(silent[:-1]), silent[-1]] if silent[1:] else silent)
    subject = f" ({about['subject']})" if about.get("subject") else ""
    within = show_milliseconds(int(about["within_ms"]))
    return Message(
        to=one.people[0],
        sender=POSTMASTER,
        type=NOTICE,
        id=f"overdue.{sha256(' '.join([one.id, *one.people]).encode()).hexdigest()[:16]}",
        subject="no answer yet",
        body=f"{who} did not answer your message {one.id}{subject} within {within}.",
        thread_id=about["thread_id"],
        in_reply_to=one.id,
        generation=about["generation"],
        metadata={"silent": list(silent)},
    )


def _answers(bus: PostBus, message: Message) -> list[Message]:
    """Return the answers of the recipient of a message, the first one first."""
    try:
        found = [one for one in bus.answers(message.sender, message.id) if one.sender == message.to]
    except InboxNotFound:
        return []
    return sorted(found, key=lambda one: one.time_ms)


def reply_to(bus: PostBus, message: Message) -> Reply | None:
    """Return the state of the answer to a message; None if it asks for none."""
    import time

    if not message.requires_response:
        return None
    due = message.time_ms + message.deadline_ms if message.deadline_ms else 0
    answers = _answers(bus, message)
    if answers:
        return Reply(due, overdue=False, answer=answers[0].id, late=0 < due < answers[0].time_ms)
    return Reply(due, overdue=0 < due < time.time_ns() // 1_000_000)
