"""Tasks of queues as data for machines: what ``--json`` prints, and what servers answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit.words import iso

if TYPE_CHECKING:
    from swarm.bus.message import Message
    from swarm.bus.protocol import Claim, Task

#: The user's word for a state of a task → the bus's word.
_WORDS = {
    "queued": "ready",
    "nudged": "ready",
    "claimed": "taken",
    "seen": "taken",
    "acked": "done",
    "dead": "given up",
}


def taken_data(claim: Claim) -> list[dict[str, Any]]:
    """Return the tasks of a queue that were taken together, for machines."""
    pairs = zip(claim.messages, claim.attempts, strict=True)
    return [{**_message(message), "attempts": attempts} for message, attempts in pairs]


def queued_data(task: Task) -> dict[str, Any]:
    """Return a task of a queue for machines."""
    return {
        **_message(task.stored.message),
        "state": task_word(task),
        "who": task.who,
        "since": iso(task.since_ms),
        "attempts": task.stored.attempts,
        "waits_for": list(task.needs),
        "reason": task.blocked or task.stored.reason,
        "result": task.note,
    }


def task_word(task: Task) -> str:
    """Return the state in a user's words."""
    if task.blocked:
        return "blocked"
    return "waiting" if task.needs else _WORDS.get(task.stored.state, task.stored.state)


def _message(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "text": message.body,
        "from": message.sender,
        "priority": message.priority,
        "after": list(message.after),
        "added_at": iso(message.time_ms),
    }
