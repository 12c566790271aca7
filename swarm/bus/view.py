"""Look into a box without changing it."""

from __future__ import annotations

import json
import os
from collections import deque
from heapq import merge
from typing import TYPE_CHECKING

from swarm.bus.errors import MessageProblem
from swarm.bus.message import KINDS, Message, from_record
from swarm.bus.protocol import Claim, Event, Stored, Trace
from swarm.bus.reader.choose import place_of, unsettled
from swarm.bus.wire import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from swarm.bus.box import Box
    from swarm.bus.log.part import Line
    from swarm.bus.protocol import Place
    from swarm.bus.reader.state import OpenClaim, State


def addresses(root: str) -> Iterator[str]:
    """Give every box below a folder."""
    for kind in KINDS:
        try:
            names = sorted(os.listdir(f"{root}/{kind}"))
        except FileNotFoundError:
            continue
        for name in names:
            if name[0] != "." and _is_box(f"{root}/{kind}/{name}"):
                yield f"{kind}.{name}"


def _is_box(folder: str) -> bool:
    """Whether a folder is a box, also an unreadable one."""
    try:
        os.lstat(f"{folder}/reader.lock")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def claims(box: Box, over: Callable[[OpenClaim], str]) -> Iterator[Claim]:
    """Give the claims in flight."""
    state = box.reader_log.look()
    for claim_id, held in state.claims.items():
        if not over(held):
            messages = tuple(_message(box.lanes[p.lane].one(p.at, p.size)) for p in held.places)
            attempts = tuple(state.attempts.get(p.id, 0) for p in held.places)
            lease = held.lease / 1000
            told = (held.who, held.since_ms, held.taker)
            yield Claim(claim_id, box.address, messages, attempts, lease, held.places, *told)


def oldest(box: Box, state: State, age: Callable[[dict[str, Any]], int]) -> int:
    """Return the age of the oldest message that waits."""
    taken = state.claimed()
    ages = [0]
    for lane, log in enumerate(box.lanes):
        for line in unsettled(log, state.lanes[lane]):
            if (lane, line.at) not in taken and line.number >= 0:
                ages.append(age(json.loads(line.data)))
                break
    return max(ages)


def peek(box: Box, limit: int, over: Callable[[OpenClaim], str]) -> Iterator[Stored]:
    """Yield the unfinished messages."""
    state = box.reader_log.look()
    taken = _in_hand(state, over)
    left = limit
    for lane, log in enumerate(box.lanes):
        for line in unsettled(log, state.lanes[lane]) if left > 0 else ():
            place = place_of(lane, line)
            if place is not None:
                yield stored(box, state, place, line, taken)
                left -= 1
            if left <= 0:
                return


def history(box: Box, limit: int, over: Callable[[OpenClaim], str]) -> list[Stored]:
    """Return the last messages of all lanes.

    Each lane in its order, whatever the clock said; across lanes by their times, for there is no other order.
    """
    state = box.reader_log.look()
    taken = _in_hand(state, over)
    found: list[list[Stored]] = [[] for _ in PRIORITIES]
    for lane, log in enumerate(box.lanes):
        for line in log.tail(limit):
            place = place_of(lane, line)
            if place is not None and not is_gone(state, place):
                found[lane].append(stored(box, state, place, line, taken))
    return list(merge(*found, key=lambda one: one.message.time_ms))[-limit:]


def dead(box: Box) -> Iterator[Stored]:
    """Give the dead letters."""
    state = box.reader_log.look()
    for grave in state.dead.values():
        place = grave.place
        yield stored(box, state, place, box.lanes[place.lane].one(place.at, place.size), {})


def trace(box: Box, message_id: str, over: Callable[[OpenClaim], str]) -> Trace | None:
    """Return all that is known of a message."""
    known = box.find(message_id)
    if known is None:
        return None
    place, line = known
    state = box.reader_log.look()
    if is_gone(state, place):
        return None
    found = stored(box, state, place, line, _in_hand(state, over))
    events = [Event("queued", found.message.time_ms)]
    for entry in box.reader_log.about(message_id):
        name = _EVENTS.get(entry["op"], "")
        if name:
            events.append(Event(name.format(**entry), entry.get("t", 0), str(entry.get("why", ""))))
    return Trace(found._replace(state=_noticed(found.state, [event.name for event in events])), tuple(events))


def _noticed(state: str, names: list[str]) -> str:
    """Return the state of a message with its reader's events since its last delivery or return.

    What was seen of a claim that is over, before anybody wrote that down, is over with it.
    """
    begin = max((n for n, name in enumerate(names) if name in _MOVES), default=0)
    since = names[begin:]
    if "seen" in since and (state == "claimed" or (state == "queued" and since[0] != "claimed")):
        return "seen"
    return "nudged" if state == "queued" and "nudged" in since else state


def answers(box: Box, message_id: str) -> Iterator[Message]:
    """Give the messages that say that they answer one."""
    state = box.reader_log.look()
    for lane, log in enumerate(box.lanes):
        for line in log.search(f'"in_reply_to":"{message_id}"'.encode(), 0, log.end()):
            place = place_of(lane, line)
            if place is not None and not is_gone(state, place):
                message = _message(line)
                if message.in_reply_to == message_id:
                    yield message


def thread(box: Box, thread_id: str, over: Callable[[OpenClaim], str]) -> Iterator[Stored]:
    """Give the message that began a thread, and those that say that they are of it."""
    state = box.reader_log.look()
    taken = _in_hand(state, over)
    for lane, log in enumerate(box.lanes):
        for line in log.search(f'"{thread_id}"'.encode(), 0, log.end()):
            place = place_of(lane, line)
            if place is not None and not is_gone(state, place):
                one = stored(box, state, place, line, taken)
                if thread_id in (one.message.id, one.message.thread_id):
                    yield one


def sent(box: Box, sender: str, limit: int, over: Callable[[OpenClaim], str]) -> list[Stored]:
    """Return the last messages in a box from one sender, each lane in its order."""
    state = box.reader_log.look()
    taken = _in_hand(state, over)
    found = []
    for lane, log in enumerate(box.lanes):
        last: deque[tuple[Place, Line]] = deque(maxlen=limit)
        for line in log.search(f'"from":"{sender}"'.encode(), 0, log.end()):
            place = place_of(lane, line)
            if place is not None and not is_gone(state, place):
                last.append((place, line))
        found += [stored(box, state, place, line, taken) for place, line in last]
    return [one for one in found if one.message.sender == sender]


def removed(box: Box) -> int:
    """Return how many messages are not kept any longer."""
    return sum(lane.removed for lane in box.reader_log.look().lanes)


def is_noted(box: Box, message_id: str) -> bool:
    """Whether the reader log names a message as finished here."""
    return any(entry["op"] in ("ack", "dead") for entry in box.reader_log.about(message_id))


def is_gone(state: State, place: Place) -> bool:
    """Whether a message is not kept any longer, though its file may still be there."""
    return state.lanes[place.lane].gone.skip(place.at) > place.at


_EVENTS = {
    "claim": "claimed",
    "ack": "acked",
    "nack": "returned",
    "back": "returned",
    "dead": "dead",
    "requeue": "requeued",
    "event": "{event}",
}


#: What moves a message from hand to hand.
_MOVES = ("claimed", "returned", "dead", "requeued")


def _in_hand(state: State, over: Callable[[OpenClaim], str]) -> dict[tuple[int, int], str]:
    """Return the places of taken messages: (lane, at) → claim.

    A claim may be over although nobody wrote that down yet: whoever takes next does. What it holds waits.
    """
    ended = {claim for claim, held in state.claims.items() if over(held)}
    return {place: claim for place, claim in state.claimed().items() if claim not in ended}


def stored(box: Box, state: State, place: Place, line: Line, taken: Mapping[tuple[int, int], str]) -> Stored:
    """Return a record as it stands.

    Args:
        taken: the places of what is in hand.
    """
    reason = ""
    if place.id in state.dead:
        what, reason = "dead", state.dead[place.id].reason
    elif state.lanes[place.lane].is_settled(place.at):
        what = "acked"
    else:
        what = "claimed" if (place.lane, place.at) in taken else "queued"
    return Stored(_message(line), box.address, what, line.number, state.attempts.get(place.id, 0), reason)


def _message(line: Line) -> Message:
    """Return a message to show; one that cannot be read shows that."""
    try:
        return from_record(json.loads(line.data))
    except (ValueError, MessageProblem) as error:
        return Message("", "", subject="cannot be read", body=str(error))
