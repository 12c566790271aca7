"""Threads: messages and the one that began them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.messages.office.pruned import not_found

if TYPE_CHECKING:
    from swarm.bus.message import Message
    from swarm.bus.protocol import PostBus, Stored


def thread(bus: PostBus, message_id: str) -> tuple[Stored, ...]:
    """Return the messages of the thread to which one belongs, in order.

    Raises:
        MessageNotFound: nobody knows it.
    """
    found = bus.find(message_id, lenient=True)
    if not found:
        raise not_found(bus, message_id)
    first = found[0].stored.message
    wanted = first.thread_id or first.id
    belonging = bus.thread(wanted)
    at = {stored.message.id: stored.message for stored in belonging}
    return tuple(sorted(belonging, key=lambda stored: (*_place(stored.message, at), stored.message.id)))


def _place(message: Message, known: dict[str, Message]) -> tuple[int, int]:
    """Return a message's place in a thread: by its time, but after the message that it answers."""
    seen = {message.id}
    latest = message.time_ms
    while message.in_reply_to in known and message.in_reply_to not in seen:
        message = known[message.in_reply_to]
        seen.add(message.id)
        latest = max(latest, message.time_ms)
    return latest, len(seen)
