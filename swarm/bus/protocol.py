"""The protocol of a message bus; ``tests/bus/test_bus_contract.py`` proves an engine against it.

1. When a durable ``send`` has returned, the message survives a power cut.
2. It is handed out until it is acknowledged, and never again once ``ack`` has returned.
3. The same id sent twice to a recipient is one message, if its sender says the same; else it is refused.
4. An inbox hands out the messages of each sender in the order they were sent, whatever their
   priorities, delays and redeliveries; it has one claim in flight.  A queue has many, and so has a box of events.
5. What is handed out is whole and verified; the rest is set aside with the reason.
6. A claim is held by a living process for a time; when either ends the messages go back.  After
   ``MAX_ATTEMPTS``, or when it has expired, a message becomes a dead letter and its sender is told.
7. Nothing depends on what time of day it is.

``Tasks`` adds what only queues have: messages that wait until others are done, that are given up, and
that leave a result.  ``PostBus`` adds what the post office needs; whoever is above this room is typed on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, Protocol  # see below

    from swarm.bus.message import Message
    from swarm.kit.errors import SwarmError
else:
    Protocol = object  # at run time nobody asks

MAX_ATTEMPTS = 5


class Holder(NamedTuple):
    """The process on whose life a claim depends; pid 0: none, only the lease counts."""

    boot: str
    pid: int
    start: int


class Receipt(NamedTuple):
    """A message in a box.

    Attributes:
        address: the box.
        lane: its priority there.
        number: its number in the lane, from 1 without gaps.
        duplicate: it was there already; nothing was added.
    """

    id: str
    address: str
    lane: str
    number: int
    durable: bool
    duplicate: bool = False


class Place(NamedTuple):
    """Where a message is kept; means something to the engine only."""

    lane: int
    at: int
    size: int
    id: str
    sender: str


class Claim(NamedTuple):
    """Messages handed out, in order.

    Attributes:
        attempts: how many times each has been handed out by now.
        who: the taker, under the name that it gave.
        since_ms: when, by the time of day, for people only.
        taker: the process that holds the claim, or else the one that took it; None: not known.
    """

    id: str
    address: str
    messages: tuple[Message, ...]
    attempts: tuple[int, ...]
    lease: float
    places: tuple[Place, ...]
    who: str = ""
    since_ms: int = 0
    taker: Holder | None = None


class Keep(NamedTuple):
    """How long messages are kept that are acknowledged or dead letters.

    Attributes:
        ms: so long, counted from the last message in the same file of the log.
        octets: how much a box may have on the disk before the oldest go earlier; 0: any amount.
        least_ms: but never before this.
    """

    ms: int
    octets: int = 0
    least_ms: int = 3_600_000


class Pruned(NamedTuple):
    """The pruned part of a box: number of messages, bytes of its logs."""

    address: str
    messages: int
    octets: int


class PrunedAttachments(NamedTuple):
    """Attachments that no message refers to any longer: how many, how many bytes."""

    files: int
    octets: int


class Depth(NamedTuple):
    """How much is in a box; ``oldest_ms`` is the age of the oldest that waits, 0 when none does."""

    waiting: int
    claimed: int
    dead: int
    oldest_ms: int


class Stored(NamedTuple):
    """A message as it stands in a box.

    Attributes:
        state: queued, nudged, claimed, seen, acked or dead.
        reason: why it is dead.
    """

    message: Message
    address: str
    state: str
    number: int
    attempts: int = 0
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it in its JSON shape: the message exactly as it was sent, and where it is."""
        where = {"state": self.state, "attempts": self.attempts, "number": self.number, "reason": self.reason}
        return {**self.message.as_dict(), **where}


class Task(NamedTuple):
    """A message of a queue, with its state for workers.

    Attributes:
        needs: ids of those it waits for that are not done yet.
        blocked: why one of those never will be done as things are; "" while there is hope.
        who: the last taker's name, if it is claimed or done.
        since_ms: when it was taken, done or given up.
        note: the result given with the acknowledgement.
    """

    stored: Stored
    needs: tuple[str, ...] = ()
    blocked: str = ""
    who: str = ""
    since_ms: int = 0
    note: str = ""


class Event(NamedTuple):
    """Something that happened to a message: queued, nudged, claimed, seen, returned, acked, dead, requeued."""

    name: str
    time_ms: int
    evidence: str = ""


class Trace(NamedTuple):
    """The history of a message in one box."""

    stored: Stored
    events: tuple[Event, ...]


class Machine(Protocol):
    """The machine as the bus needs it."""

    def boot_id(self) -> str:
        """Return a name of the running boot."""

    def up_ms(self) -> int:
        """Return milliseconds since this boot, asleep or awake; never goes back."""

    def now_ms(self) -> int:
        """Return the time of day, for people."""

    def start_of(self, pid: int) -> int | None:
        """Return the start time of a living process, or None."""


class Bus(Protocol):
    """Boxes of messages. ``message.box_of`` reads their addresses."""

    def declare(self, address: str, *, generation: str = "") -> None:
        """Make a box for this run of its owner."""

    def send(self, message: Message, *, durable: bool = True) -> Receipt:
        """Put a message into its recipient's box."""

    def receive(
        self,
        address: str,
        *,
        wait: float = 0.0,
        limit: int = 1,
        lease: float = 60.0,
        holder: Holder | None = None,
        who: str = "",
        types: tuple[str, ...] = (),
        wanted: Callable[[Message], bool] | None = None,
    ) -> Claim | None:
        """Take the next messages, or wait for one. *holder* is this process unless named.

        With *types* only messages of these, with *wanted* those of which it says so: not of an inbox, which has an
        order.
        """

    def ack(self, claim: Claim, ids: tuple[str, ...] | None = None, *, note: str = "") -> None:
        """Done with these, or all, of a claim; *note* is kept as the evidence."""

    def nack(self, claim: Claim, ids: tuple[str, ...] | None = None, *, delay: float = 0.0, reason: str = "") -> None:
        """Give back these, or all, to be handed out again after *delay* seconds.

        In an inbox the later ones of the same senders go back with them, as if never taken.
        """

    def extend(self, claim: Claim, lease: float, holder: Holder | None = None) -> None:
        """Keep a claim for so many more seconds from now; with *holder* it depends on that life from then on."""

    def take_over(self, claim: Claim) -> None:
        """Take over a claim from the process that took it; its lease and its holder stay."""

    def claims(self, address: str) -> tuple[Claim, ...]:
        """Return the claims in flight."""

    def depth(self, address: str) -> Depth:
        """Count."""

    def peek(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return the unfinished messages, by lane, oldest first; changes nothing."""

    def history(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages in any state, oldest first."""

    def dead(self, address: str) -> tuple[Stored, ...]:
        """Return the dead letters."""

    def requeue(self, address: str, message_id: str) -> None:
        """Let a dead letter wait again, at its old place, as if never tried."""

    def find(self, message_id: str) -> tuple[Trace, ...]:
        """Return the state of a message in each box that got it."""

    def record_event(self, address: str, message_id: str, event: str, evidence: str = "") -> None:
        """Write down that a message was ``nudged`` or ``seen``."""

    def remove(self, address: str) -> None:
        """Forget a box with all that is in it."""

    def attach(self, source: Path | bytes, name: str = "") -> dict[str, Any]:
        """Keep a copy of a file for ``Message.artifacts``."""

    def attachment(self, artifact: dict[str, Any]) -> Path:
        """Return the kept copy after verifying it."""


class Tasks(Bus, Protocol):
    """A bus whose queues hold tasks: ``Message.after`` names the messages of the queue that must be done first.

    They must be there when it is sent, so no two can wait for each other.  It is done when it was
    acknowledged; one that became a dead letter holds back those after it until it is requeued and done.
    """

    def fail(self, claim: Claim, ids: tuple[str, ...] | None = None, *, reason: str) -> None:
        """Give up messages of a claim, all by default: they become dead letters, and their senders get a notice."""

    def tasks(self, address: str, limit: int = 1000, *, settled: bool = False) -> tuple[Task, ...]:
        """Return the open tasks, by lane, oldest first, dead letters last; *settled* adds finished ones."""


class PostBus(Tasks, Protocol):
    """The bus under the post office: it also reads all boxes at once, and removes old messages."""

    @property
    def root(self) -> str:
        """The folder of the messages, where the post office also keeps its own notes."""

    def close(self) -> None:
        """Let go of the files."""

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses of all boxes."""

    def find(self, message_id: str, *, lenient: bool = False) -> tuple[Trace, ...]:
        """Return the history of a message in each box that it was sent to.

        Args:
            lenient: leave out what is in a box that cannot be read, unless no other box knows the message.
        """

    def answers(self, address: str, message_id: str) -> tuple[Message, ...]:
        """Return the messages in a box that answer a message."""

    def thread(self, thread_id: str) -> tuple[Stored, ...]:
        """Return the messages of a thread in all boxes."""

    def sent(self, sender: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages from one sender in all inboxes and queues, oldest first."""

    def damaged(self, message_id: str) -> str:
        """Return the file with the rest of a damaged message; empty if unknown."""

    def unreadable(self) -> tuple[SwarmError, ...]:
        """Return why boxes cannot be looked into, one error for each."""

    def removed(self, address: str = "") -> int:
        """Return how many messages of a box, or of all, are not kept any longer."""

    def was_removed(self, message_id: str) -> bool:
        """Whether a message is known not to be kept any longer."""

    def expire(self, address: str) -> None:
        """Expire the messages of a box whose time to live is over, and notify their senders."""

    def prune(self, address: str, keep: Keep, *, dry_run: bool = False) -> Pruned:
        """Remove old finished messages of a box."""

    def prune_attachments(self, keep: Keep, *, dry_run: bool = False, after: Iterable[str] = ()) -> PrunedAttachments:
        """Remove old attachments that no message refers to; *after*: as if these boxes were pruned."""

    def attachments_stay(self) -> AbstractContextManager[None]:
        """Prevent the removal of attachments during a block, so that a box can be moved."""
