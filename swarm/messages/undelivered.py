"""Notify senders of messages that a removed agent never read."""

from __future__ import annotations

from contextlib import closing, suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from swarm.bus.errors import MessageNotFound
from swarm.bus.message import DROP, POSTMASTER, Message
from swarm.bus.notices import send_notice
from swarm.kit.errors import SwarmError
from swarm.kit.words import count
from swarm.messages.inboxes import bus_of

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.model import Agent, Session
    from swarm.project.world import World

NOTICE = "delivery"
_MOST = 10_000
_NAMED = 5
_UNREAD = ("queued", "nudged")


def notify_senders(world: World, session: Session, agent: Agent, *, discard: bool) -> None:
    """Notify each sender of unread messages in an inbox under removal, once, however often it is called.

    No reason to keep an agent: what cannot be told now is in the salvage all the same.
    """
    address = f"{agent.name}@{session.name}"
    with suppress(SwarmError, OSError), closing(bus_of(world)) as bus:
        unread: dict[tuple[str, str], list[Message]] = {}
        for stored in bus.peek(address, _MOST):
            message = stored.message
            if stored.state in _UNREAD and message.sender not in (POSTMASTER, DROP, address) and message.type != NOTICE:
                unread.setdefault((message.sender, message.sender_generation), []).append(message)
        for (sender, generation), messages in unread.items():
            notice = _notice(session, agent, sender, messages, discard=discard)
            send_notice(bus, notice._replace(generation=generation))


def _notice(session: Session, agent: Agent, sender: str, messages: list[Message], *, discard: bool) -> Message:
    address = f"{agent.name}@{session.name}"
    ids = ", ".join(one.id for one in messages[:_NAMED]) + (", …" if len(messages) > _NAMED else "")
    where = "gone with it (--discard)" if discard else f"saved with it: swarm restore {session.name}/{agent.name}"
    once = f"{address} {session.generation_of(agent)} {sender} {messages[-1].id}"
    verb = "is" if len(messages) == 1 else "are"
    return Message(
        to=sender,
        sender=POSTMASTER,
        type=NOTICE,
        id=f"delivery.{sha256(once.encode()).hexdigest()[:16]}",
        subject=f"{address} was cleaned up before it read your message",
        body=f"{count(len(messages), 'message')} of yours to {address} ({ids}) {verb} {where}.",
    )


def saved_with(state: Path, message_id: str) -> str:
    """Return the agent with whose worktree a message was saved, as ``SESSION/AGENT``; empty: it was not."""
    from swarm.bus.keeping.saved import waiting_in

    for box in sorted(state.glob("salvage/*/*/*/inbox")):
        with suppress(SwarmError, OSError, ValueError):
            if any(message.id == message_id for message in waiting_in(box, ordered=True)):
                return "/".join(box.parts[-4:-2])
    return ""


def not_found(state: Path, problem: MessageNotFound, message_id: str) -> MessageNotFound:
    """Return the error for a missing message; name its place if it was saved with its recipient."""
    name = saved_with(state, message_id)
    if not name:
        return problem
    return MessageNotFound(
        f"message {message_id[:60]!a} was never read: it was saved with {name} when that was cleaned up",
        hint=f"swarm restore {name}",
    )
