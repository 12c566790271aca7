"""Send a message to every recipient it names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus import addressing
from swarm.bus.addressing import USER, Member
from swarm.bus.errors import AttachmentProblem, IdTaken, InboxNotFound, MessageNotFound, MessageProblem
from swarm.bus.message import Message, box_of, encode, new_id
from swarm.kit.errors import Interrupted, SwarmError
from swarm.messages import directory
from swarm.messages.errors import SentInPart
from swarm.messages.office.base import PostBase
from swarm.project.errors import AgentNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from swarm.bus.protocol import Receipt
    from swarm.messages.office.base import Sender


class Sent(NamedTuple):
    """One message to one recipient.

    Attributes:
        note: why the recipient does not read it now, such as "it does not run"; empty when it can.
    """

    id: str
    to: str
    note: str
    receipt: Receipt


def _made_id(me: Sender, *, several: bool, timed: bool) -> str:
    """Return a new id where one is needed: the bus makes one for a single recipient, and need not look for it then."""
    as_user = me.who is None and not me.outside
    return new_id() if several or timed or as_user else ""


def _refuse_far(recipients: Sequence[Member | None], me: Sender) -> None:
    """Refuse a spawned agent that writes to others than its parent, the user, and those below it.

    Raises:
        NotInTree
    """
    if me.member is None or me.member.kind == "team":
        return
    far = addressing.out_of_reach(recipients, me.member)
    if far:
        from swarm.callers.errors import NotInTree

        raise NotInTree(
            f"cannot send to {', '.join(far[:3])}: you are {me.address}, who reaches parent, children and user",
            hint="tell your parent: swarm send parent 'TEXT'",
        )


def _check_may(me: Sender, recipients: Sequence[Member | None]) -> None:
    """Refuse recipients out of an agent's reach, and more messages than it may send; people have as many as they like.

    Raises:
        NotInTree, TooManyMessages
    """
    _refuse_far(recipients, me)
    if me.who is not None:
        from swarm.messages import allowance

        allowance.spend(me.who.run_dir, len(recipients))


class Sending(PostBase):
    """Send messages as this process."""

    def send(  # noqa: PLR0913  # what a message is made of
        self,
        to: str | Iterable[str],
        body: str,
        *,
        subject: str = "",
        type: str = "message",  # noqa: A002  # the word of the message
        priority: str = "normal",
        id: str = "",  # noqa: A002
        reply_to: str = "",
        expects_reply: bool = False,
        deadline_ms: int = 0,
        ttl_ms: int = 0,
        attach: Sequence[str | Path] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[Sent, ...]:
        """Send one message to all named recipients; when this returns it is on the disk in every inbox.

        Args:
            to: names as in ``bus/addressing.py``; with *reply_to* it may be empty: whoever sent that.
            id: sent again under the same id it is the same message, if it says the same; no recipient gets it twice.
            reply_to: id of the message that this one answers.
            attach: files; each is copied.

        Raises:
            Refused, AgentNotFound, Ambiguous, MessageProblem, TooManyMessages: it cannot be sent so; nothing was sent.
            QuotaReached, NoSpace, Locked, IdTaken: nobody could be given it; ``Refused`` holds several of these.
            SentInPart: some have it, and others do not.
        """
        me, answered = self.me(), self._answered(reply_to) if reply_to else None
        recipients = self._recipients(to, me, answered)
        _check_may(me, recipients)
        message = Message(
            to=USER,
            sender=me.address,
            body=body,
            subject=subject,
            type=type,
            priority=priority,
            id=id or _made_id(me, several=len(recipients) > 1, timed=bool(deadline_ms or ttl_ms)),
            metadata=self._signed(metadata or {}, me),
            artifacts=self._attached(attach) if attach else (),
            thread_id=(answered.thread_id or answered.id) if answered else "",
            in_reply_to=answered.id if answered else "",
            requires_response=expects_reply,
            deadline_ms=deadline_ms,
            ttl_ms=ttl_ms,
            sender_generation=me.member.generation if me.member else "",
        )
        return self._deliver(message, recipients, answered)

    def _signed(self, metadata: Mapping[str, Any], me: Sender) -> dict[str, Any]:
        """Return the metadata of a message, with how swarm knows its sender where that is no agent."""
        if me.outside:
            return {**metadata, "outside": me.outside}
        if me.who is not None:
            return dict(metadata)
        from swarm.messages import proof

        kept = {key: value for key, value in metadata.items() if key not in proof.OWN}
        return kept | proof.way_of(self._state, self._environ, self._calling)

    def _deliver(
        self, message: Message, recipients: Sequence[Member | None], answered: Message | None
    ) -> tuple[Sent, ...]:
        """Send a message, and note down which one it answers."""
        send = self._send_awaited if message.requires_response and message.deadline_ms else self._send_all
        if message.ttl_ms:
            self._note_life(message, recipients)
        try:
            sent = send(message, recipients)
        except SentInPart:
            if answered is not None:
                self._note_answer(answered, message.id)
            raise
        if answered is not None:
            self._note_answer(answered, sent[0].id)
        return sent

    def _note_life(self, message: Message, recipients: Sequence[Member | None]) -> None:
        """Schedule a check for the message's expiry, as its inbox may never be read again."""
        from swarm.messages import deadlines

        encode(message)  # is it a message?
        self._make_ready()
        deadlines.note_life(self._messages, message, [member.address if member else USER for member in recipients])

    def _send_all(self, message: Message, recipients: Sequence[Member | None]) -> tuple[Sent, ...]:
        """Send to all recipients; a full or unwritable inbox does not affect the others."""
        sent: list[Sent] = []
        refused: list[SwarmError] = []
        for member in recipients:
            try:
                sent.append(self._send(message, member))
            except (MessageProblem, Interrupted):
                raise  # whoever gets it
            except SwarmError as error:
                error.facts["to"] = member.address if member else USER
                refused.append(error)
        if refused:
            from swarm.messages.office.refused import raise_refused

            raise_refused(message, sent, refused)
        return tuple(sent)

    def _send_awaited(self, message: Message, recipients: Sequence[Member | None]) -> tuple[Sent, ...]:
        """Send a message with a deadline for its answer, and record the deadline."""
        from swarm.machine.run_folder import runfiles as files
        from swarm.messages import deadlines
        from swarm.supervisor import awaited

        encode(message)  # is it a message?
        addresses = [member.address if member else USER for member in recipients]
        for address, member in zip(addresses, recipients, strict=True):
            if not os.path.isdir(self.folder(address)):  # one that is not there later was cleaned up
                self.declare(member)
        noted = files.read(deadlines.folder_of(self._messages), awaited.name_of(message.id))
        people = [message.sender] if noted is None else noted.get("people")
        if not isinstance(people, list) or people[:1] != [message.sender]:
            raise IdTaken(f"the id {message.id} is taken: answers to another message of this id are awaited")
        deadlines.note(self._messages, message, addresses)
        try:
            return self._send_all(message, recipients)
        except BaseException as error:
            taken = getattr(error, "code", "") == IdTaken.code
            if noted is None and (taken or not self.bus.find(message.id)):
                deadlines.forget(self._messages, message.id)
            raise

    def _attached(self, files: Sequence[str | Path]) -> tuple[dict[str, Any], ...]:
        """Keep copies of files; none when one of them is missing."""
        from pathlib import Path

        from swarm.kit import files as fsio

        paths = [Path(one) for one in files]
        for path in paths:
            if not _is_text(path.name):
                raise AttachmentProblem(
                    f"cannot attach {path}: its name is not UTF-8", hint="rename it, or attach a copy with another name"
                )
            if not path.is_file():
                why = "it is not a regular file" if path.exists() else "there is no such file"
                raise AttachmentProblem(f"cannot attach {path}: {why}", hint="check the path")
        self._make_ready()
        folder = Path(self._state, directory.MESSAGES)
        fsio.make_folders(folder, 0o700)
        return tuple(self.bus.attach(path) for path in paths)

    def _recipients(self, to: str | Iterable[str], me: Sender, answered: Message | None) -> tuple[Member | None, ...]:
        """Return the recipients of a message; without names, the sender of the one that it answers."""
        words = addressing.split(to) if to or answered is None else (self._sender_of(answered),)
        bridges = directory.bridges(self._state)
        return addressing.resolve(words, self._in_question(words, me), me.member, bridges=bridges)

    def _in_question(self, words: Sequence[str], me: Sender) -> tuple[Member, ...]:
        """Return the agents that the words may mean; an agent that writes to its own session needs no other record."""
        plainly_user = (USER,) if me.member is not None and me.member.line else (USER, addressing.PARENT)
        if all(word in plainly_user for word in words):
            return ()
        if me.member is None or any("@" in word for word in words):
            return self.members()
        own = directory.members(self._state, (me.member.session,))
        known = {m.agent.casefold() for m in own}
        plain = all(addressing.is_group(word) or word.casefold() in known for word in words)
        return own if plain else self.members()

    def _send(self, message: Message, member: Member | None) -> Sent:
        if member is None:
            to, note = USER, ""
            message = message._replace(to=to)
        else:
            to, note = member.address, directory.whereabouts(self._state, member)
            message = message._replace(to=to, generation=member.generation)
        me = self.me()
        if me.who is None and not me.outside:
            from swarm.messages import proof

            self._make_ready()
            message = proof.sealed(self._state, message)
        try:
            receipt = self.bus.send(message)
        except InboxNotFound:
            self.declare(member)
            receipt = self.bus.send(message)
        return Sent(receipt.id, to, note, receipt)

    def _answered(self, message_id: str) -> Message:
        """Return the answered message, preferably the copy in the caller's inbox."""
        found = [trace.stored for trace in self.bus.find(message_id, lenient=True)]
        if not found:
            raise self._not_found(message_id)
        own = box_of(self.me().address)
        return next((one for one in found if one.address == own), found[0]).message

    def _sender_of(self, message: Message) -> str:
        known = {USER: "", **{m.address: m.generation for m in self.members()}}
        hint = f"name the recipient: swarm send TO TEXT --reply-to {message.id}"
        if message.sender not in known:
            raise AgentNotFound(f"cannot answer {message.id}: its sender {message.sender} has no inbox", hint=hint)
        if message.sender_generation not in ("", known[message.sender]):
            raise AgentNotFound(
                f"cannot answer {message.id}: its sender is gone; {message.sender} is another agent now", hint=hint
            )
        return message.sender

    def _note_answer(self, message: Message, answer: str) -> None:
        """Write down that a message of one's own was read: it was answered."""
        if box_of(message.to) == box_of(self.me().address):
            try:
                self.bus.record_event(message.to, message.id, "seen", f"answered by {answer}")
            except (MessageNotFound, InboxNotFound):
                return


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
