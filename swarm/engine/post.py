"""Messages of a repository's agents and its user: sending, taking, settling, looking. Needs no git and no tmux.

Paths are text here: ``pathlib`` costs more to load than a message to send.

Who sends is not an argument: it is what the machine says of the process (``pane/whoami.py``).  The state of a
message is what happened to it, each with its evidence; nothing here types into a pane.
"""

from __future__ import annotations

import os
from time import monotonic

from swarm.domain import addressing
from swarm.domain.addressing import USER, Member
from swarm.domain.bus import Holder
from swarm.domain.errors import (
    AgentNotFound,
    AttachmentProblem,
    ClaimLost,
    IdTaken,
    InboxNotFound,
    Interrupted,
    MessageNotFound,
    MessageProblem,
    NotForAgents,
    SentInPart,
    SessionNotFound,
    SwarmError,
)
from swarm.domain.message import Message, box_of, encode, new_id
from swarm.domain.tuples import NamedTuple
from swarm.engine import post_office
from swarm.engine.post_rules import open_bus
from swarm.pane.whoami import whoami

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from swarm.domain.bus import Claim, Depth, Pruned, PrunedAttachments, Receipt, Stored, Trace
    from swarm.domain.settings import Settings
    from swarm.engine.overdue import Reply
    from swarm.pane.whoami import Who

#: How long a reader may take over what it has taken, unless it says otherwise.
LEASE = 600.0
_NOT_NOW = 5.0


class Sender(NamedTuple):
    """Who this process is.

    Attributes:
        address: ``agent@session``, or ``user`` for a person and whatever no agent of this repository started.
        member: the agent; None for the user.
        who: what the machine says of it; None for the user.
        outside: the agent of another repository that it belongs to: it may write to this one, and no more.
    """

    address: str
    member: Member | None = None
    who: Who | None = None
    outside: str = ""


class Sent(NamedTuple):
    """One message to one recipient.

    Attributes:
        note: why the recipient does not read it now, such as "it does not run"; empty when it can.
    """

    id: str
    to: str
    note: str
    receipt: Receipt


class Taken(NamedTuple):
    """What is in a reader's hands.

    Attributes:
        again: it had them already, and has not acknowledged them.
    """

    claim: Claim
    again: bool = False

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages, in order."""
        return self.claim.messages


class Post:
    """The messages below one ``.swarm`` folder.

    Args:
        prepare: makes that folder, in a repository that has none yet.
    """

    def __init__(
        self,
        state: str | Path,
        *,
        environ: Mapping[str, str] | None = None,
        lease: float = LEASE,
        settings: Callable[[], Settings] | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self._prepare = prepare
        self._state = os.fspath(state)
        self._environ = os.environ if environ is None else environ
        self._settings = settings
        self._lease = lease
        self._me: Sender | None = None
        self._all: tuple[Member, ...] | None = None
        self._messages = f"{self._state}/{post_office.MESSAGES}"
        self.bus = open_bus(self._messages, self.settings)

    @classmethod
    def find(cls, start: str | None = None, *, environ: Mapping[str, str] | None = None) -> Post | None:
        """Open the messages of the repository that this process works for; None where only git could tell.

        Args:
            start: a folder that somebody named; without it an agent's own repository comes first.
        """
        env = os.environ if environ is None else environ
        who = whoami(env) if start is None else None
        state = post_office.find_state(os.getcwd() if start is None else start, env)
        if who is not None and os.path.isdir(f"{who.state}/sessions"):
            state = who.state
        return None if state is None else cls(state, environ=env)

    @property
    def state(self) -> str:
        """The ``.swarm`` folder."""
        return self._state

    def settings(self) -> Settings:
        """Return the settings of the repository; read when somebody asks, for most acts need none."""
        if self._settings is not None:
            return self._settings()
        from swarm.engine.post_rules import settings_of

        return settings_of(self._state, self._environ)

    # --- who ------------------------------------------------------------------------------------

    def me(self) -> Sender:
        """Return who this process is in this repository."""
        if self._me is None:
            who = whoami(self._environ)
            if who is None:
                self._me = Sender(USER)
            elif not _same_folder(who.state, self._state):
                self._me = Sender(USER, outside=f"{who.address} of another repository")
            else:
                self._me = Sender(who.address, self._member_of(who), who)
        return self._me

    def _member_of(self, who: Who) -> Member:
        mine = (m for m in post_office.members(self._state, (who.session,)) if m.agent == who.agent)
        return next(mine, Member(who.agent, who.session, "", who.generation, "?"))

    def members(self) -> tuple[Member, ...]:
        """Return every agent that can be written to."""
        if self._all is None:
            self._all = post_office.members(self._state)
        return self._all

    def address(self, name: str | None = None) -> str:
        """Return the address of one box: of an agent by its name, or one's own.

        Raises:
            AgentNotFound, SessionNotFound, Ambiguous: there is none, or several.
        """
        if name is None:
            return self.me().address
        member = addressing.one(name, self.members(), self.me().member)
        return USER if member is None else member.address

    def addresses(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses of all who are to be waited for, each once; ``all@feature-x`` means several.

        Raises:
            AgentNotFound, SessionNotFound, Ambiguous: there is none, or several.
        """
        meant = addressing.resolve(names, self.members(), self.me().member, "cannot wait")
        return tuple(USER if member is None else member.address for member in meant)

    # --- send -----------------------------------------------------------------------------------

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
        """Send one message to everybody who is meant; when this returns it is on the disk in every inbox.

        Args:
            to: names as in ``domain/addressing.py``; with *reply_to* it may be empty: whoever sent that.
            id: sent again under the same id it is the same message, if it says the same.
            reply_to: id of the message that this one answers.
            attach: files; each is copied.

        Raises:
            Refused, AgentNotFound, Ambiguous: somebody is not known; nothing was sent to anybody.
            MessageProblem: it is no message; nothing was sent.
            QuotaReached, NoSpace, Locked, IdTaken: nobody could be given it; ``Refused`` holds several of these.
                Sent again under the same id nobody gets it twice.
            SentInPart: some have it, and others do not.
        """
        me = self.me()
        answered = self._answered(reply_to) if reply_to else None
        words = addressing.split(to) if to or answered is None else (self._sender_of(answered),)
        recipients = addressing.resolve(words, self._in_question(words, me), me.member)
        kept = dict(metadata or {})
        if me.outside:
            kept["outside"] = me.outside
        message = Message(
            to=USER,
            sender=me.address,
            body=body,
            subject=subject,
            type=type,
            priority=priority,
            # The bus makes one for a single recipient, and then need not look whether it knows it.
            id=id or (new_id() if len(recipients) > 1 or deadline_ms or ttl_ms else ""),
            artifacts=self._attached(attach) if attach else (),
            metadata=kept,
            thread_id=(answered.thread_id or answered.id) if answered else "",
            in_reply_to=answered.id if answered else "",
            requires_response=expects_reply,
            deadline_ms=deadline_ms,
            ttl_ms=ttl_ms,
            sender_generation=me.member.generation if me.member else "",
        )
        send = self._send_awaited if expects_reply and deadline_ms else self._send_all
        if ttl_ms:
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
        """Have somebody look when the message's time is over: maybe nobody takes anything there any more."""
        from swarm.engine import overdue

        encode(message)  # is it a message?
        self._make_ready()
        overdue.note_life(self._messages, message, [member.address if member else USER for member in recipients])

    def _send_all(self, message: Message, recipients: Sequence[Member | None]) -> tuple[Sent, ...]:
        """Send to everybody who takes it; one that is full, or cannot be written to, keeps it from no other."""
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
            from swarm.engine.post_refused import raise_refused

            raise_refused(message, sent, refused)
        return tuple(sent)

    def _send_awaited(self, message: Message, recipients: Sequence[Member | None]) -> tuple[Sent, ...]:
        """Send a message whose answer is overdue at some time, when its sender is to be told."""
        from swarm.engine import overdue
        from swarm.pane import awaited, files

        encode(message)  # is it a message?
        addresses = [member.address if member else USER for member in recipients]
        for address, member in zip(addresses, recipients, strict=True):
            if not os.path.isdir(self.folder(address)):  # one that is not there later was cleaned up
                self.declare(member)
        noted = files.read(overdue.folder_of(self._messages), awaited.name_of(message.id))
        people = [message.sender] if noted is None else noted.get("people")
        if not isinstance(people, list) or people[:1] != [message.sender]:
            raise IdTaken(f"the id {message.id} is taken: answers to another message of this id are awaited")
        overdue.note(self._messages, message, addresses)
        try:
            return self._send_all(message, recipients)
        except BaseException as error:
            taken = getattr(error, "code", "") == IdTaken.code
            if noted is None and (taken or not self.bus.find(message.id)):
                overdue.forget(self._messages, message.id)
            raise

    def _attached(self, files: Sequence[str | Path]) -> tuple[dict[str, Any], ...]:
        """Keep copies of files; none when one of them is missing."""
        from pathlib import Path

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
        folder = Path(self._state, post_office.MESSAGES)
        folder.mkdir(0o700, exist_ok=True)
        return tuple(self.bus.attach(path) for path in paths)

    def _in_question(self, words: Sequence[str], me: Sender) -> tuple[Member, ...]:
        """Return the agents that the words may mean; an agent that writes to its own session needs no other record."""
        plainly_user = (USER,) if me.member is not None and me.member.parent else (USER, addressing.PARENT)
        if all(word in plainly_user for word in words):
            return ()
        if me.member is None or any("@" in word for word in words):
            return self.members()
        own = post_office.members(self._state, (me.member.session,))
        known = {m.agent.casefold() for m in own}
        plain = all(addressing.is_group(word) or word.casefold() in known for word in words)
        return own if plain else self.members()

    def _send(self, message: Message, member: Member | None) -> Sent:
        if member is None:
            to, note = USER, ""
            message = message._replace(to=to)
        else:
            to, note = member.address, post_office.whereabouts(self._state, member)
            message = message._replace(to=to, generation=member.generation)
        try:
            receipt = self.bus.send(message)
        except InboxNotFound:
            self.declare(member)
            receipt = self.bus.send(message)
        return Sent(receipt.id, to, note, receipt)

    def declare(self, member: Member | None) -> None:
        """Make sure that an agent, or the user, has an inbox."""
        self._make_ready()
        if member is None:
            self.bus.declare(USER)
        else:
            self.bus.declare(member.address, generation=member.generation)

    def _make_ready(self) -> None:
        if os.path.isdir(self._state):
            return
        if self._prepare is None:
            raise SessionNotFound(
                "there are no messages yet: no session was ever made here", hint="start one with `swarm start`"
            )
        self._prepare()

    def _answered(self, message_id: str) -> Message:
        """Return the message that is answered: the copy in one's own inbox, if it is there."""
        found = [trace.stored for trace in self.bus.find(message_id)]
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

    # --- take and settle ------------------------------------------------------------------------

    def take(
        self,
        name: str | None = None,
        *,
        wait: float = 0.0,
        limit: int = 100,
        lease: float | None = None,
        hold: bool = True,
    ) -> Taken | None:
        """Take the next messages of an inbox, one's own by default; they are the taker's until *lease* is over.

        What was taken before and not yet acknowledged is given again; what another reader has in hand is not.

        Args:
            wait: for how many seconds to wait for the first.
            lease: seconds after which what is not acknowledged goes back.
            hold: an agent's program holds them while it lives; False: this process does, until it hands them over.

        Raises:
            NotForAgents: an agent may only take from its own inbox.
        """
        address = self._mine(name, "take from")
        time = self._lease if lease is None else lease
        holder = self.holder() if hold else None
        try:
            held = [claim for claim in self.bus.claims(address) if self._took(claim)]
            if held:
                return Taken(held[0], again=True)
            return self._receive(address, wait, limit, time, holder)
        except InboxNotFound:
            self._declare(address)
            return self._receive(address, wait, limit, time, holder)

    def _took(self, claim: Claim) -> bool:
        return claim.who in ("", self.me().address)

    def held_by(self, name: str | None = None) -> str:
        """Return who else has messages of an inbox in hand, so that nobody can take any; empty: nobody."""
        try:
            others = (claim.who for claim in self.bus.claims(self.address(name)) if not self._took(claim))
            return next(others, "")
        except InboxNotFound:
            return ""

    def _receive(self, address: str, wait: float, limit: int, lease: float, holder: Holder | None) -> Taken | None:
        me = self.me()
        until = monotonic() + wait
        while True:
            left, due = until - monotonic(), self._tell_overdue(address)
            pause = max(0.0, left if due is None else min(left, due))
            claim = self.bus.receive(address, wait=pause, limit=limit, lease=lease, holder=holder, who=me.address)
            if claim is not None:
                return Taken(claim)
            if monotonic() >= until:
                return None

    def _tell_overdue(self, address: str) -> float | None:
        """Tell whose answers are overdue; return in how many seconds the next one to an address is."""
        from swarm.pane.awaited import FOLDER

        if not os.path.isdir(f"{self._messages}/{FOLDER}"):
            return None
        from swarm.engine import overdue

        overdue.tell(self.bus, self._messages)
        left = overdue.left_ms(self._messages, address)
        if left is None:
            return None
        return max(0.05, left / 1000) if left > 0 else _NOT_NOW  # one that could not be told just now

    def holder(self) -> Holder:
        """Return on whose life a claim of this process depends: an agent's program, nobody's for a person."""
        from swarm.pane import proc

        who = self.me().who
        if who is None:
            return Holder(proc.boot_id(), 0, 0)
        return Holder(who.boot, who.program_pid, who.program_start)

    def hand_over(self, claim: Claim, lease: float) -> None:
        """Let a claim depend on the life of the agent's program, and no longer on that of this process."""
        self.bus.extend(claim, lease, self.holder())

    def seen(self, taken: Taken, evidence: str) -> None:
        """Write down that what was taken has entered its reader's turn, and how one knows."""
        for message in taken.messages:
            self.bus.record_event(taken.claim.address, message.id, "seen", evidence)

    def done(self, taken: Taken) -> None:
        """Acknowledge what was taken; it never comes again."""
        self.bus.ack(taken.claim)

    def ack(self, ids: Sequence[str] = (), name: str | None = None) -> tuple[str, ...]:
        """Acknowledge messages, or all that are in hand; they never come again. Return their ids.

        Raises:
            ClaimLost: they are not in hand (any more).
        """
        claim, chosen = self._in_hand(ids, name, "acknowledge")
        self.bus.ack(claim, chosen)
        return chosen

    def nack(
        self, ids: Sequence[str] = (), name: str | None = None, *, delay: float = 0.0, reason: str = ""
    ) -> tuple[str, ...]:
        """Give messages back, or all that are in hand, to come again; return their ids."""
        claim, chosen = self._in_hand(ids, name, "give back")
        self.bus.nack(claim, chosen, delay=delay, reason=reason)
        return chosen

    def extend(self, lease: float | None = None, name: str | None = None) -> tuple[str, ...]:
        """Keep what is in hand for so many more seconds from now; return the ids."""
        claim, chosen = self._in_hand((), name, "extend")
        self.bus.extend(claim, self._lease if lease is None else lease)
        return chosen

    def requeue(self, message_id: str, name: str | None = None) -> None:
        """Let a dead letter wait again."""
        address = self._mine(name, "requeue in")
        try:
            self.bus.requeue(address, message_id)
        except (MessageNotFound, InboxNotFound):
            raise MessageNotFound(
                f"{address} has no dead letter {message_id[:60]!a}", hint=f"those it has: swarm inbox dead {address}"
            ) from None

    def _in_hand(self, ids: Sequence[str], name: str | None, what: str) -> tuple[Claim, tuple[str, ...]]:
        address = self._mine(name, f"{what} messages of")
        try:
            # A person may settle what anybody has in hand.
            claims = [claim for claim in self.bus.claims(address) if self.me().who is None or self._took(claim)]
        except InboxNotFound:
            claims = []
        for claim in claims:
            own = tuple(message.id for message in claim.messages)
            if not ids or set(ids) <= set(own):
                return claim, tuple(i for i in own if not ids or i in ids)
        if not claims:
            raise ClaimLost(f"cannot {what}: nothing of {address} is in hand")
        there = {message.id for claim in claims for message in claim.messages}
        missing = ", ".join(i[:60] for i in ids if i not in there)
        raise ClaimLost(f"cannot {what} {missing!a}: not in hand", hint="in hand: " + ", ".join(sorted(there)[:5]))

    def _mine(self, name: str | None, what: str) -> str:
        """Return the address of a box that this process may change."""
        me = self.me()
        address = self.address(name)
        if me.outside:
            raise NotForAgents(f"cannot {what} the inbox of {address}: you are {me.outside}")
        if me.who is not None and address != me.address:
            raise NotForAgents(
                f"cannot {what} the inbox of {address}: you are {me.address}",
                hint="an agent changes only its own inbox; to look: swarm inbox " + address,
            )
        return address

    def _declare(self, address: str) -> None:
        member = next((m for m in self.members() if m.address == address), None)
        if address != USER and member is None:
            raise AgentNotFound(f"there is no agent {address}")
        self.declare(member)

    # --- look -----------------------------------------------------------------------------------

    def inbox(self, name: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return what is not settled in an inbox, most urgent first; changes nothing."""
        return self._look(self.bus.peek, name, limit)

    def history(self, name: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages of an inbox, whatever became of them."""
        return self._look(self.bus.history, name, limit)

    def dead(self, name: str | None = None) -> tuple[Stored, ...]:
        """Return the dead letters of an inbox, each with the reason."""
        return self._look(self.bus.dead, name)

    def depth(self, name: str | None = None) -> Depth:
        """Count what is in an inbox."""
        from swarm.domain.bus import Depth

        try:
            return self.bus.depth(self.address(name))
        except InboxNotFound:
            return Depth(0, 0, 0, 0)

    def _look(self, look: Any, name: str | None, *how: int) -> tuple[Stored, ...]:
        try:
            found: tuple[Stored, ...] = look(self.address(name), *how)
        except InboxNotFound:
            return ()
        return found

    def message(self, message_id: str) -> tuple[Trace, ...]:
        """Return all that is known of a message, once for each of its recipients.

        Raises:
            MessageNotFound
        """
        found = self.bus.find(message_id)
        if not found:
            raise self._not_found(message_id)
        return found

    def save_files(self, message_id: str, folder: str | Path) -> tuple[Path, ...]:
        """Copy what is attached to a message into a folder; return the copies. Nothing there is replaced.

        Raises:
            MessageNotFound
            AttachmentProblem: nothing is attached, or it cannot be copied.
        """
        from pathlib import Path

        from swarm.engine.post_files import save

        return save(self.bus, self.message(message_id)[0].stored.message, Path(folder))

    def _not_found(self, message_id: str) -> SwarmError:
        from pathlib import Path

        from swarm.engine import undelivered
        from swarm.engine.post_kept import not_found

        return undelivered.not_found(Path(self._state), not_found(self.bus, message_id), message_id)

    def reply(self, trace: Trace) -> Reply | None:
        """Return what became of the answer that a message asks for; None when it asks for none."""
        from swarm.engine.overdue import reply_to

        return reply_to(self.bus, trace.stored.message)

    def removed(self, name: str | None = None) -> int:
        """Return how many messages of an inbox are not kept any longer."""
        try:
            return self.bus.removed(self.address(name))
        except InboxNotFound:
            return 0

    def prune(
        self, name: str | None = None, *, older_than_ms: int | None = None, dry_run: bool = False
    ) -> tuple[Pruned, ...]:
        """Remove messages that are settled and old, of one inbox; without a name an agent's own, or everybody's.

        Args:
            older_than_ms: how old; default: what the settings say.

        Raises:
            NotForAgents: an agent may only change its own inbox.
        """
        from swarm.engine import post_kept

        keep = post_kept.rule(self.settings, older_than_ms)
        return post_kept.prune(self.bus, self._prunable(name), keep, dry_run=dry_run)

    def prune_attachments(
        self, name: str | None = None, *, older_than_ms: int | None = None, dry_run: bool = False
    ) -> PrunedAttachments:
        """Remove the attachments that no message of anybody refers to any longer; to be called after ``prune``.

        Args:
            name, older_than_ms, dry_run: as for ``prune``; they say what would have been removed by it.
        """
        from swarm.engine import post_kept

        keep = post_kept.rule(self.settings, older_than_ms)
        return post_kept.prune_attachments(self.bus, self._prunable(name), keep, dry_run=dry_run)

    def _prunable(self, name: str | None) -> tuple[str, ...]:
        if name is None and self.me().who is None:
            return self.bus.addresses()
        return (box_of(self._mine(name, "remove messages of")),)

    def unreadable(self, message_id: str = "") -> tuple[str, ...]:
        """Return what is missing from ``message`` and ``thread``: boxes that cannot be looked into, a damaged copy."""
        damaged = self.bus.damaged(message_id) if message_id else ""
        words = f"a copy of {message_id} was damaged on the disk; what is left of it: {damaged}"
        return (*(error.message for error in self.bus.unreadable()), *((words,) if damaged else ()))

    def thread(self, message_id: str) -> tuple[Stored, ...]:
        """Return the messages that belong together with one of them, oldest first, one for each recipient."""
        from swarm.engine.post_threads import thread

        return thread(self.bus, message_id)

    def folder(self, address: str) -> str:
        """Return the folder of a box."""
        kind, _, box = box_of(address).partition(".")
        return f"{self._messages}/{kind}/{box}"

    def unread(self, addresses: Iterable[str]) -> dict[str, int]:
        """Return how many messages wait in each of some boxes; a box to which nothing was ever sent costs a look."""
        from swarm.pane.inbox import Inbox, dropped

        found = {}
        for address in addresses:
            folder = self.folder(address)
            found[address] = 0
            if not Inbox(folder).is_fresh():
                try:
                    found[address] = self.bus.depth(address).waiting + len(dropped(folder))
                except InboxNotFound:
                    continue
        return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _same_folder(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
