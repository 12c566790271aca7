"""Append a message: encode before the lock, sync after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.bus.log import files
from swarm.bus.message import OWN_IDS, POSTMASTER, Message, encode, new_id
from swarm.bus.protocol import Receipt
from swarm.bus.wire import PRIORITIES

if TYPE_CHECKING:
    from swarm.bus.box import Box
    from swarm.bus.log.part import Line
    from swarm.bus.protocol import Machine, Place
    from swarm.kit.errors import SwarmError


def send(box: Box, machine: Machine, message: Message, *, durable: bool) -> Receipt:
    """Put a message into its box; see ``FileBus.send``."""
    if not message.artifacts:
        return _send(box, machine, message, durable=durable)
    from swarm.bus.keeping import blobs

    with files.os_errors(f"cannot send to {box.address}"), blobs.in_use(box.blobs, message.artifacts, box.patience):
        return _send(box, machine, message, durable=durable)


def _send(box: Box, machine: Machine, message: Message, *, durable: bool) -> Receipt:
    given = message.id
    now = machine.now_ms()
    message_id = given or new_id(now)
    record = encode(message, message_id, now)
    if given and message.sender != POSTMASTER and _is_kept(given):
        raise _kept_for_swarm(given)
    lane = PRIORITIES.index(message.priority)
    try:
        with box.mutex:
            if given:
                # Existing records are read before the lock, so that other writers need not wait.
                before = box.ends()
                known = box.find(given)
                # Under this lock no other process adds a message of the same id, to any lane.
                with files.locked_folder(box.folder, box.patience):
                    known = known or box.find(given, before)
                    if known is not None and not _is_same(message.sender, record, *known):
                        raise _taken(box, known[0], message.sender)
                    if known is not None and (not durable or box.lanes[known[0].lane].rewrite(known[1])):
                        place, line = known
                        there = PRIORITIES[place.lane]
                        return Receipt(given, box.address, there, line.number, durable, duplicate=True)
                    written = box.append(lane, _finished(record, message, box, machine, lane, durable=durable))
            else:
                written = box.append(lane, _finished(record, message, box, machine, lane, durable=durable))
            handle = box.lanes[lane].handle() if durable else None
        if handle is not None:
            handle.sync()
    except (FileNotFoundError, NotADirectoryError):
        raise box.not_there() from None
    except OSError as error:
        problem = files.translated(error, f"cannot send to {box.address}")
        problem.facts["id"] = message_id  # under which it may be there all the same
        raise problem from error
    return Receipt(message_id, box.address, message.priority, written.number, durable)


def _is_same(sender: str, record: bytes, place: Place, there: Line) -> bool:
    """Whether a message equals the stored record of the same id.

    Of a notice the id alone says what it is about; its words may differ with who noticed it.
    """
    if sender != place.sender or sender == POSTMASTER:
        return sender == place.sender
    import json

    from swarm.bus.message import from_record

    one, other = (as_given(from_record(json.loads(data))) for data in (record, there.data))
    return one == other


def as_given(message: Message) -> Message:
    """Return the sender's part of a message, without its time and runs."""
    return message._replace(to="", id="", time_ms=0, generation="", sender_generation="")


def _taken(box: Box, place: Place, sender: str) -> SwarmError:
    from swarm.bus.errors import IdTaken

    whose = "another message of yours" if place.sender == sender else f"a message from {place.sender}"
    return IdTaken(f"the id {place.id} is taken: {whose} in {box.address} has it")


def _is_kept(message_id: str) -> bool:
    kind, dot, _ = message_id.partition(".")
    return bool(dot) and kind in OWN_IDS


def _kept_for_swarm(message_id: str) -> SwarmError:
    from swarm.bus.errors import MessageProblem

    begin = message_id.partition(".")[0]
    return MessageProblem(
        f"reserved message id: {message_id[:60]}: ids with {begin}. are reserved for swarm", hint="choose another id"
    )


def _finished(record: bytes, message: Message, box: Box, machine: Machine, lane: int, *, durable: bool) -> bytes:
    """Add the bus's own fields; most messages need none."""
    parts = []
    if message.after:
        needed = [_place_of(box, one) for one in message.after]
        if durable:  # or after a power cut another message could stand where the needed one did
            box.secure(tuple(needed))
        parts.append(b'"needs":[%b]' % b",".join(b"[%d,%d]" % (place.lane, place.at) for place in needed))
    if message.ttl_ms:
        parts.append(b'"boot":"%b","up":%d' % (machine.boot_id().encode(), machine.up_ms()))
    if box.ordered and lane < len(PRIORITIES) - 1 and (tails := box.tails(lane)):
        if durable:  # or after a power cut what its sender sends later could come to stand before these ends
            box.secure_tails(tails)
        parts.append(b'"after":[%b]' % b",".join(b"[%d,%d]" % tail for tail in tails))
    return b'%b,"bus":{%b}}' % (record[:-1], b",".join(parts)) if parts else record


def _place_of(box: Box, message_id: str) -> Place:
    found = box.find(message_id)
    if found is None:
        from swarm.bus.errors import MessageNotFound

        raise MessageNotFound(f"{message_id} is not in {box.address.replace('.', ' ', 1)}, so nothing can wait for it")
    return found[0]
