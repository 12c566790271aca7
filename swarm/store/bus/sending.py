"""Sending: the record is made before the lock, synced after it."""

from __future__ import annotations

from swarm.domain.bus import Receipt
from swarm.domain.message import PRIORITIES, Message, encode, new_id
from swarm.store.bus import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm.domain.bus import Machine, Place
    from swarm.store.bus.box import Box


def send(box: Box, machine: Machine, message: Message, *, durable: bool) -> Receipt:
    """Put a message into its box; see ``FileBus.send``."""
    if not message.artifacts:
        return _send(box, machine, message, durable=durable)
    from swarm.store.bus import blobs

    with files.os_errors(f"cannot send to {box.address}"), blobs.in_use(box.blobs, message.artifacts, box.patience):
        return _send(box, machine, message, durable=durable)


def _send(box: Box, machine: Machine, message: Message, *, durable: bool) -> Receipt:
    given = message.id
    now = machine.now_ms()
    message_id = given or new_id(now)
    record = encode(message, message_id, now)
    lane = PRIORITIES.index(message.priority)
    try:
        with box.mutex:
            if given:
                # What is there already is looked through before the lock: others would have to wait for it.
                before = box.ends()
                known = box.find(given)
                # Below this lock nobody else adds a message of the same id, to whatever lane.
                with files.locked_folder(box.folder, box.patience):
                    known = known or box.find(given, before)
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
        raise files.translated(error, f"cannot send to {box.address}") from error
    return Receipt(message_id, box.address, message.priority, written.number, durable)


def _finished(record: bytes, message: Message, box: Box, machine: Machine, lane: int, *, durable: bool) -> bytes:
    """Add what the bus itself needs to know, in most messages nothing."""
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
        from swarm.domain.errors import MessageNotFound

        raise MessageNotFound(f"{message_id} is not in {box.address.replace('.', ' ', 1)}, so nothing can wait for it")
    return found[0]
