"""How messages are shown, to people and to machines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Message, Sent, Stored, Taken
    from swarm.cli.output import Output

#: The option that limits a list.
Most = Annotated[str, typer.Option("--max", metavar="N", help="Maximum number of messages.")]
_STYLES = {"queued": "warn", "nudged": "warn", "dead": "bad", "acked": "dim"}


def count_of(option: str, text: str) -> int:
    """Read a number of messages."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0
    if not 1 <= number <= 10_000:
        raise UsageProblem(f"{option} {text}: give a number from 1 to 10000")
    return number


# --- for people -------------------------------------------------------------------------------------


def sender_of(message: Message) -> str:
    """Return the sender of a message, with the name of a user's program; foreign agents keep their own."""
    from swarm.cli.text import plain

    said = message.metadata.get("outside") or message.metadata.get("label")
    notes = [said] if isinstance(said, str) and said else []
    if message.sender == "user":
        via = message.metadata.get("via")
        notes += [f"via {via}"] if isinstance(via, str) else []
        notes += ["nothing shows that the user sent it"] if message.metadata.get("unproven") and not notes else []
    return plain(f"{message.sender} ({', '.join(notes)})" if notes else message.sender)


def headline(message: Message) -> str:
    """Return subject or first line."""
    from swarm.cli.text import plain, shorten

    first = message.subject or next((line for line in message.body.splitlines() if line.strip()), "")
    return plain(shorten(first.strip(), 200))


def show_stored(output: Output, one: Stored, whose: str) -> None:
    """Print two lines: an id fills half a line, and the subject must not be cut for it."""
    from swarm.cli.text import age, plain, shorten

    message, room = one.message, output.room()
    notes = [one.state, *([message.priority] if message.priority != "normal" else [])]
    notes += [f"{one.attempts} times handed out"] if one.attempts > 1 else []
    state = output.paint(", ".join(notes), _STYLES.get(one.state, ""), sys.stdout)
    output.out(f"{plain(message.id)}  {whose}, {age(message.time_ms)} ago: {state}")
    about = headline(message) + (f" ({plain(one.reason)})" if one.reason else "")
    output.out(f"    {about if room is None else shorten(about, room - 4)}")


def head_lines(message: Message, *marks: str) -> list[str]:
    """Return sender, time, id and special properties of a message."""
    from swarm.cli.text import age, plain

    notes = [mark for mark in marks if mark]
    if message.priority != "normal":
        notes.append(message.priority)
    if message.type != "message":
        notes.append(plain(message.type))
    if message.requires_response:
        notes.append("answer wanted" + (f" within {duration(message.deadline_ms)}" if message.deadline_ms else ""))
    if message.in_reply_to:
        notes.append(f"answers {plain(message.in_reply_to)}")
    when = f"{age(message.time_ms)} ago" if message.time_ms else "?"
    lines = [f"from {sender_of(message)}, {when}: {plain(message.id)}" + (f" [{', '.join(notes)}]" if notes else "")]
    if message.subject:
        lines.append(f"subject: {plain(message.subject)}")
    return lines


def message_lines(message: Message, *marks: str) -> list[str]:
    """Return a whole message; the first line is its head."""
    from swarm.cli.text import lines_of, plain

    body = [f"  {line}".rstrip() for line in lines_of(message.body)]
    files = [f"  attached: {plain(one.get('name') or one)}{_size(one)}" for one in message.artifacts]
    return [*head_lines(message, *marks), *body, *files]


def _size(artifact: dict[str, Any]) -> str:
    size = artifact.get("size")
    return f" ({size:,} bytes)" if isinstance(size, int) else ""


def duration(milliseconds: int) -> str:
    """Return a time span in one unit."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


# --- taken messages ---------------------------------------------------------------------------------


def taken_data(address: str, taken: Taken | None) -> dict[str, Any]:
    """Return the taken messages for machines."""
    if taken is None:
        return {"inbox": address, "claim": None, "again": False, "lease": 0, "messages": []}
    pairs = zip(taken.messages, taken.claim.attempts, strict=True)
    return {
        "inbox": address,
        "claim": taken.claim.id,
        "again": taken.again,
        "lease": taken.claim.lease,
        "messages": [{**message.as_dict(), "attempts": attempts} for message, attempts in pairs],
    }


def nothing_taken(holder: str) -> str:
    """Return why nothing was taken."""
    return f"nothing can be taken: {holder} has messages in hand" if holder else "no messages"


def taken_lines(taken: Taken) -> list[str]:
    """Return the taken messages for people."""
    lines: list[str] = []
    for message, attempts in zip(taken.messages, taken.claim.attempts, strict=True):
        again = "still in hand" if taken.again else f"handed out for the {attempts}. time" if attempts > 1 else ""
        lines += ([""] if lines else []) + message_lines(message, again)
    return lines


def taken_hints(taken: Taken, *, ack: bool, of: str = "") -> list[str]:
    """Return the next commands to type; *of* names the inbox, unless it is the caller's own."""
    hints = [] if ack else ["when done: swarm inbox ack" + (f" --of {of}" if of else "")]
    answerable = [message for message in taken.messages if message.is_answerable]
    wanted = [message for message in answerable if message.requires_response] or answerable
    hints += [f"save the attachments: swarm message {one.id} --save DIR" for one in taken.messages if one.artifacts][:1]
    return [*hints, *(f"to answer: swarm reply {message.id} TEXT" for message in wanted[:1])]


# --- sent messages ----------------------------------------------------------------------------------


def sent_data(sender: str, sent: Sequence[Sent]) -> dict[str, Any]:
    """Return the sent messages for machines."""
    return {
        "id": sent[0].id,
        "from": sender,
        "sent": [
            {
                "to": one.to,
                "id": one.id,
                "priority": one.receipt.lane,
                "number": one.receipt.number,
                "durable": one.receipt.durable,
                "duplicate": one.receipt.duplicate,
                "note": one.note,
            }
            for one in sent
        ],
    }


def sent_lines(sent: Sequence[Sent]) -> list[str]:
    """Return the sent messages for people: the id, and for each recipient the reason for a delay."""
    lines = []
    for one in sent:
        notes = ["sent before, nothing was added"] if one.receipt.duplicate else []
        notes += [f"{one.note}: it waits in the inbox"] if one.note else []
        lines.append(f"sent {one.id} to {one.to}" + (f" ({'; '.join(notes)})" if notes else ""))
    return lines
