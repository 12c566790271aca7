"""Take messages from an inbox and finish them."""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.addressing import USER
from swarm.bus.errors import ClaimLost, InboxNotFound, MessageNotFound
from swarm.bus.protocol import Holder
from swarm.messages import directory
from swarm.messages.office.base import PostBase
from swarm.project.errors import AgentNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.bus.message import Message
    from swarm.bus.protocol import Claim

_NOT_NOW = 5.0
#: Interval at which a waiting person's process checks for ended ones of the same person that held messages.
_LOOK_EVERY = 2.0


class Taken(NamedTuple):
    """The messages that a reader holds.

    Attributes:
        again: it had them already, and has not acknowledged them.
    """

    claim: Claim
    again: bool = False

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages, in order."""
        return self.claim.messages


class Taking(PostBase):
    """Take and finish messages as this process."""

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

        What was taken before and not yet acknowledged is given again; what another reader has in hand is not.  An
        agent is one reader.  So is each process of the user's, and what it leaves in hand at its end is the next one's.

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
            return self._again(address) or self._receive(address, wait, limit, time, holder)
        except InboxNotFound:
            if wait <= 0 and address == USER and not os.path.isdir(self._state):
                return None  # nothing was ever made here, and nothing is waited for
            self._declare(address)
            return self._receive(address, wait, limit, time, holder)

    def _again(self, address: str) -> Taken | None:
        """Return the claim that this reader already holds, or takes over from an ended process of the user."""
        for claim in self.bus.claims(address):
            if not self._took(claim):
                continue
            if self.me().who is None and claim.taker is not None and not _is_here(claim.taker):
                try:
                    self.bus.take_over(claim)
                except ClaimLost:  # another one was faster
                    continue
            return Taken(self._checked(claim), again=True)
        return None

    def _took(self, claim: Claim) -> bool:
        """Whether a claim belongs to this reader: to its agent, or to no other living process of the user."""
        if claim.who not in ("", self.me().address):
            return False
        taker = claim.taker
        return self.me().who is not None or taker is None or _is_here(taker) or not _lives(taker)

    def held_by(self, name: str | None = None) -> str:
        """Return the other reader that holds messages of an inbox; empty without one."""
        try:
            others = (self._has(claim) for claim in self.bus.claims(self.address(name)) if not self._took(claim))
            return next(others, "")
        except InboxNotFound:
            return ""

    def _has(self, claim: Claim) -> str:
        """Return the holder of a claim, in words."""
        mine = claim.taker is not None and claim.who in ("", self.me().address)
        return f"{claim.who or 'pid'} {claim.taker.pid}" if mine and claim.taker is not None else claim.who

    def _receive(self, address: str, wait: float, limit: int, lease: float, holder: Holder | None) -> Taken | None:
        me = self.me()
        until = monotonic() + wait
        while True:
            left, due = until - monotonic(), self._tell_overdue(address)
            pause = max(0.0, left if due is None else min(left, due))
            if me.who is None:
                pause = min(pause, _LOOK_EVERY)
            claim = self.bus.receive(address, wait=pause, limit=limit, lease=lease, holder=holder, who=me.address)
            if claim is not None:
                return Taken(self._checked(claim))
            if monotonic() >= until:
                return None
            if me.who is None and (taken := self._again(address)) is not None:
                return taken

    def _checked(self, claim: Claim) -> Claim:
        """Return a claim whose messages are marked where they only say that they are the user's."""
        if all(message.sender != USER for message in claim.messages):
            return claim
        from swarm.messages.proof import checked

        return claim._replace(messages=tuple(checked(self._state, message) for message in claim.messages))

    def _tell_overdue(self, address: str) -> float | None:
        """Notify senders of overdue answers; return the seconds until the next deadline of an address."""
        from swarm.supervisor.awaited import FOLDER

        if not os.path.isdir(f"{self._messages}/{FOLDER}"):
            return None
        from swarm.messages import deadlines

        deadlines.notify_senders(self.bus, self._messages)
        left = deadlines.left_ms(self._messages, address)
        if left is None:
            return None
        return max(0.05, left / 1000) if left > 0 else _NOT_NOW  # a failed notice

    def holder(self) -> Holder:
        """Return the process whose end ends a claim: an agent's program, none for a person."""
        from swarm.machine import processes

        who = self.me().who
        if who is None:
            return Holder(processes.boot_id(), 0, 0)
        return Holder(who.boot, who.program_pid, who.program_start)

    def hand_over(self, claim: Claim, lease: float) -> None:
        """Let a claim depend on the life of the agent's program, and no longer on that of this process."""
        self.bus.extend(claim, lease, self.holder())

    def seen(self, taken: Taken, evidence: str) -> None:
        """Record that taken messages entered their reader's turn, with the evidence."""
        for message in taken.messages:
            self.bus.record_event(taken.claim.address, message.id, "seen", evidence)

    def done(self, taken: Taken) -> None:
        """Acknowledge all taken messages; they are never delivered again."""
        self.bus.ack(taken.claim)

    def ack(self, ids: Sequence[str] = (), name: str | None = None) -> tuple[str, ...]:
        """Acknowledge messages, or all that this reader holds, for good; return their ids.

        Raises:
            ClaimLost: they are not in hand (any more).
        """
        claim, chosen = self._in_hand(ids, name, "acknowledge")
        self.bus.ack(claim, chosen)
        return chosen

    def nack(
        self, ids: Sequence[str] = (), name: str | None = None, *, delay: float = 0.0, reason: str = ""
    ) -> tuple[str, ...]:
        """Return messages, or all that this reader holds, for redelivery; return their ids."""
        claim, chosen = self._in_hand(ids, name, "give back")
        self.bus.nack(claim, chosen, delay=delay, reason=reason)
        return chosen

    def extend(self, lease: float | None = None, name: str | None = None) -> tuple[str, ...]:
        """Extend the lease on taken messages by seconds from now; return the ids."""
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
            claims = [claim for claim in self.bus.claims(address) if self._may_settle(claim, named=bool(ids))]
        except InboxNotFound:
            claims = []
        for claim in claims:
            own = tuple(message.id for message in claim.messages)
            if not ids or set(ids) <= set(own):
                return claim, tuple(i for i in own if not ids or i in ids)
        if not claims:
            other = self.held_by(name)
            hint = f"{other} has some in hand; name those that you mean: swarm inbox {address}" if other else None
            raise ClaimLost(f"cannot {what}: nothing of {address} is in hand", hint=hint)
        there = {message.id for claim in claims for message in claim.messages}
        missing = ", ".join(i[:60] for i in ids if i not in there)
        raise ClaimLost(f"cannot {what} {missing!a}: not in hand", hint="in hand: " + ", ".join(sorted(there)[:5]))

    def _may_settle(self, claim: Claim, *, named: bool) -> bool:
        """Whether this process may finish a claim: a person may, but those of other processes only by id."""
        if self._took(claim):
            return True
        return self.me().who is None and (named or claim.who not in ("", self.me().address))

    def _declare(self, address: str) -> None:
        everybody = (*self.members(), *directory.bridges(self._state))
        member = next((m for m in everybody if m.address == address), None)
        if address != USER and member is None:
            raise AgentNotFound(f"there is no agent {address}")
        self.declare(member)


def _is_here(taker: Holder) -> bool:
    return taker.pid == os.getpid() and _lives(taker)


def _lives(taker: Holder) -> bool:
    from swarm.machine import processes

    return processes.is_alive(taker.pid, taker.start)
