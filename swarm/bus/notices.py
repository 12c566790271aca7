"""Notify senders of dead letters and of messages damaged on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.bus.addressing import USER
from swarm.bus.errors import InboxNotFound, MessageProblem
from swarm.bus.log.files import beginning_of
from swarm.bus.message import DEAD_LETTER, POSTMASTER, Message, box_of
from swarm.bus.wire import ID, is_word
from swarm.kit.errors import Interrupted, SwarmError

#: The user's box always exists for readers, even before its first message.
_USER = box_of(USER)
#: How a line begins that a log adds for itself.
_NO_MESSAGE = b'{"log":'

if TYPE_CHECKING:
    from swarm.bus.box import Box
    from swarm.bus.protocol import Bus, Receipt
    from swarm.bus.reader.state import Grave


def tell_senders(box: Box, bus: Bus) -> None:
    """Send a notice for each dead letter; the id says which, so that doing it twice makes one.

    Never fails, for a claim may have been made already: what could not be told is told another time.
    """
    try:
        with box.mutex:
            owed = [(one, grave, _run_of_sender(box, grave)) for one, grave in box.reader_log.look().owed.items()]
            handle = box.reader_log.handle()
        handle.sync()
        for message_id, grave, run in owed:
            notice = _notice(box.address, message_id, grave, run)
            if notice is not None:
                send_notice(bus, notice)
            with box.mutex, box.reader_log as state:
                if message_id in state.owed:
                    box.reader_log.add({"op": "told", "id": message_id})
    except Interrupted:
        raise
    except (OSError, SwarmError):
        return


def tell_damaged(box: Box, bus: Bus) -> None:
    """Send a notice for each record that was set aside, to its sender if that can be read, or else to the user.

    Never fails, like ``tell_senders``: what could not be told is told another time.
    """
    try:
        with box.mutex:
            untold = tuple(box.reader_log.look().untold)
    except Interrupted:
        raise
    except (OSError, SwarmError):
        return
    for lane, at in untold:
        try:
            _tell_of(box, bus, lane, at)
        except Interrupted:
            raise
        except (OSError, SwarmError):  # one full inbox is no one else's
            continue


def _tell_of(box: Box, bus: Bus, lane: int, at: int) -> None:
    path = box.fragment(lane, at)
    data = beginning_of(path)
    if at and data and not data.startswith(_NO_MESSAGE):  # a lane begins with its own line
        notice = _damage(box, path, data, f"{box.reader_log.identity!r} {lane} {at}")
        if send_notice(bus, notice) is None:
            send_notice(bus, notice._replace(to=USER, generation=""))
    with box.mutex, box.reader_log as state:
        if (lane, at) in state.untold:
            box.reader_log.add({"op": "reported", "lane": lane, "at": at})


def _damage(box: Box, path: str, data: bytes, once: str) -> Message:
    """Return the notice of a damaged record, with only valid words of the record."""
    from os.path import abspath

    from swarm.bus.reader.choose import head_of

    message_id, sender = (one.decode(errors="replace") for one in head_of(data) or (b"", b""))
    run = data.partition(b'"sender_generation":"')[2].partition(b'"')[0].decode(errors="replace")
    try:
        box_of(sender)
    except MessageProblem:
        sender = USER
    message_id = message_id if is_word(ID, message_id) else ""
    which = f"Message {message_id}" if message_id else "A message"
    to = USER if sender == POSTMASTER else sender
    body = f"{which} to {box.address} was damaged on the disk, and maybe never read. Left of it: {abspath(path)}"
    return _letter(to, run if is_word(ID, run) else "", once, "damaged on the disk", body, message_id)


def _run_of_sender(box: Box, grave: Grave) -> str:
    """Return the run of the sender that wrote a message, so that no other run gets the notice; empty if unknown."""
    import json

    place = grave.place
    try:
        record = json.loads(box.lanes[place.lane].one(place.at, place.size).data)
    except ValueError:
        return ""
    run = str(record.get("sender_generation", "")) if isinstance(record, dict) else ""
    return run if is_word(ID, run) else ""


def _notice(address: str, message_id: str, grave: Grave, run: str) -> Message | None:
    """Return the notice to send; None if the sender has no inbox, or is the bus itself."""
    sender = grave.place.sender
    if sender == POSTMASTER:
        return None
    try:
        to = box_of(sender)
    except MessageProblem:
        return None
    body = f"Your message {message_id} to {address} was not delivered: {grave.reason}"
    return _letter(to, run, f"{address} {message_id} {grave.time_ms}", "not delivered", body, message_id)


def _letter(to: str, run: str, once: str, subject: str, body: str, about: str) -> Message:
    """Return a notice to this run of a sender; *once* makes its id, so that sending twice makes one message."""
    from hashlib import sha256

    return Message(
        to=to,
        sender=POSTMASTER,
        type=DEAD_LETTER,
        id=f"dead.{sha256(once.encode()).hexdigest()[:16]}",
        subject=subject,
        body=body,
        in_reply_to=about,
        generation=run,
    )


def send_notice(bus: Bus, notice: Message) -> Receipt | None:
    """Send a notice of swarm's own; None when it was for an agent that is gone."""
    try:
        return bus.send(notice)
    except InboxNotFound:
        if box_of(notice.to) != _USER:
            return None
        bus.declare(_USER)  # the user never got a message
        return bus.send(notice)
