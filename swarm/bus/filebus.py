"""The message bus in files: no daemon, and no shared file is ever rewritten.

Order of locks: box (only for ids given by the sender) → lane → lane's folder; readers' lock → lane.
Nothing is synced below a lock but the first record of a part, and a snapshot.
"""

from __future__ import annotations

import os
import time
from _thread import RLock
from typing import TYPE_CHECKING

from swarm.bus.box import Box, Limits
from swarm.bus.files import os_errors
from swarm.bus.machine import ThisMachine
from swarm.bus.message import box_of
from swarm.bus.sending import send
from swarm.machine import own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, TypeVar

    from swarm.bus.files import Patience
    from swarm.bus.message import Message
    from swarm.bus.protocol import (
        Claim,
        Depth,
        Holder,
        Keep,
        Machine,
        Pruned,
        PrunedAttachments,
        Receipt,
        Stored,
        Task,
        Trace,
    )
    from swarm.bus.state import Held
    from swarm.bus.unused import Saved, Sweep
    from swarm.kit.errors import SwarmError

    T = TypeVar("T")

_MOST_OPEN = 32
#: A process looks for what is too old in a box when it has written a snapshot, but at most once in so many seconds.
_TIDY_EVERY = 60.0


class FileBus:
    """The boxes below one folder; for any number of threads and processes.

    Args:
        keep: asked, now and then, how long what is settled is kept; without it that is for ever.
        patience: asked, by whoever has to wait for a lock, for how many seconds.
        saved: asked for the folders of boxes that were moved elsewhere and may come back: their attachments stay.
            Without it none is removed.
    """

    def __init__(
        self,
        root: Path,
        machine: Machine | None = None,
        limits: Limits = Limits(),  # noqa: B008
        keep: Callable[[], Keep] | None = None,
        patience: Patience = None,
        saved: Saved | None = None,
    ) -> None:
        self._saved = saved
        self._root = os.fspath(root)
        own.trust(self._root)
        self._machine = machine or ThisMachine()
        self._limits = limits
        self._keep = keep
        self._patience = patience
        self._tidied: dict[str, float] = {}  # when, of each box
        self._boxes: dict[str, Box] = {}
        self._known: dict[str, Box] = {}  # the same by whatever address was used
        self._guard = RLock()  # of both
        self._pid = os.getpid()

    def close(self) -> None:
        """Let go of all files."""
        self._known.clear()
        for address in list(self._boxes):
            self._boxes.pop(address).close()

    # --- boxes ----------------------------------------------------------------------------------

    def declare(self, address: str, *, generation: str = "") -> None:
        """Make sure that a box is there, for this run of its owner; what is in it stays."""
        box = self._box(box_of(address))
        with box.mutex, os_errors(f"cannot make {box.address}"):
            box.make()
            with box.book as state:
                if state.generation != generation:
                    box.book.add({"op": "open", "generation": generation, "t": self._machine.now_ms()})
            handle = box.book.handle()
        with os_errors(f"cannot make {box.address}"):
            handle.sync()

    def remove(self, address: str) -> None:
        """Forget a box with all that is in it."""
        from pathlib import Path

        from swarm.kit import files

        box = self._box(box_of(address))
        with box.mutex, os_errors(f"cannot remove {box.address}"):
            with box.book:  # also: is it there?
                for log in box.lanes:
                    log.close_for_ever()
            box.close()
            self._known.clear()
            self._boxes.pop(box.address, None)
            aside = f"{os.path.dirname(box.folder)}/.removed-{os.urandom(6).hex()}"
            try:
                own.rename(box.folder, aside)
            except FileNotFoundError:
                raise box.not_there() from None
            files.remove_tree(Path(aside))
            files.sync_folder(Path(aside).parent)

    def addresses(self) -> tuple[str, ...]:
        """Return every box there is, also those that cannot be read."""
        from swarm.bus import view

        with os_errors(f"cannot read {self._root}"):
            return tuple(view.addresses(self._root))

    def _box(self, address: str) -> Box:
        if self._pid != os.getpid():  # a fork: its descriptors share their locks with the parent's
            for box in self._boxes.values():
                box.close()
            self._boxes = {}
            self._known.clear()
            self._pid = os.getpid()
        found = self._boxes.get(address)
        if found is not None:
            return found
        with self._guard:
            return self._boxes.get(address) or self._open(address)

    def _open(self, address: str) -> Box:
        if len(self._boxes) >= _MOST_OPEN:
            self._known.clear()
            oldest = self._boxes.pop(next(iter(self._boxes)))
            with oldest.mutex:
                oldest.close()
        found = self._boxes[address] = Box(self._root, address, self._limits, self._patience)
        return found

    # --- sending --------------------------------------------------------------------------------

    def send(self, message: Message, *, durable: bool = True) -> Receipt:
        """Put a message into its recipient's box; when this returns it is there, and if *durable* stays there.

        After an error it may have arrived all the same; sent again with the same id it is one message.

        Raises:
            MessageProblem, QuotaReached, InboxNotFound: nothing was added.
            Environment: the disk is full or fails.
        """
        box = self._known.get(message.to)
        if box is None or self._pid != os.getpid():
            box = self._known[message.to] = self._box(box_of(message.to))
        return send(box, self._machine, message, durable=durable)

    # --- receiving ------------------------------------------------------------------------------

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
        """Take the next messages, in order; wait up to *wait* seconds for the first.

        An inbox gives none while another claim on it is in flight.

        Args:
            types, wanted: only messages of these, and for which this says so; not of an inbox, where that would break
                the order.

        Raises:
            InboxNotFound: there is no such box.
            MessageProblem: *types* or *wanted* for an inbox.
        """
        from swarm.bus import notices, taking
        from swarm.bus.wake import Watches

        box = self._box(box_of(address))
        taker = taking.Taker(lease, holder, who)
        only = taking.Only(types, wanted)
        deadline = time.monotonic() + wait
        watches = Watches(box)
        try:
            while True:
                with os_errors(f"cannot read {box.address}"):
                    self._intake(box)
                    taken = taking.take(box, self._machine, limit, taker, only)
                    if taken.owed:
                        notices.tell_senders(box, self)
                    if taken.untold:
                        notices.tell_damaged(box, self)
                    self._tidy(box)
                left = deadline - time.monotonic()
                if taken.claim is not None or left <= 0:
                    return taken.claim
                watches.wait(min(left, taken.due), readers_only=taken.blocked)
        finally:
            watches.put_back()

    @property
    def root(self) -> str:
        """The folder of all boxes."""
        return self._root

    def expire(self, address: str) -> None:
        """Give up what waits in a box and was not taken within its time to live, and tell the senders.

        Whoever takes does the same; this is for a box from which nobody takes.
        """
        from swarm.bus import notices, taking

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"):
            if taking.expire(box, self._machine):
                notices.tell_senders(box, self)

    def _intake(self, box: Box) -> None:
        try:
            if not os.listdir(box.folder + "/drop"):
                return
        except FileNotFoundError:
            return
        from swarm.bus.intake import take_in

        with box.mutex:
            take_in(box, self.send)

    # --- settling -------------------------------------------------------------------------------

    def ack(self, claim: Claim, ids: tuple[str, ...] | None = None, *, note: str = "") -> None:
        """Done with these, or all, of a claim; when this has returned they are never handed out again.

        Args:
            note: what came of it, kept with the event; ``tasks`` and ``find`` show it.

        Raises:
            ClaimLost: the claim is over; somebody else may have them.
        """
        from swarm.bus import taking

        box = self._box(claim.address)
        with os_errors(f"cannot acknowledge in {box.address}"):
            taking.ack(box, self._machine, claim, ids, note)
        self._tidy(box)

    def nack(self, claim: Claim, ids: tuple[str, ...] | None = None, *, delay: float = 0.0, reason: str = "") -> None:
        """Give back these, or all, of a claim, to be handed out again after *delay* seconds.

        In an inbox the later ones of the same senders go back with them, as if never taken.

        Raises:
            ClaimLost: the claim is over.
        """
        from swarm.bus import taking

        box = self._box(claim.address)
        with os_errors(f"cannot give back to {box.address}"):
            taking.nack(box, self._machine, claim, ids, delay, reason)

    def fail(self, claim: Claim, ids: tuple[str, ...] | None = None, *, reason: str) -> None:
        """Give these, or all, of a claim up: they become dead letters now, and their senders are told.

        Raises:
            ClaimLost: the claim is over.
        """
        from swarm.bus import notices, taking

        box = self._box(claim.address)
        with os_errors(f"cannot give up in {box.address}"):
            taking.fail(box, self._machine, claim, ids, reason)
            notices.tell_senders(box, self)

    def extend(self, claim: Claim, lease: float, holder: Holder | None = None) -> None:
        """Keep a claim for *lease* more seconds from now.

        Args:
            holder: on whose life it depends from then on; None: as before.

        Raises:
            ClaimLost: it is over.
        """
        from swarm.bus import taking

        box = self._box(claim.address)
        with os_errors(f"cannot extend a claim on {box.address}"):
            taking.extend(box, self._machine, claim, lease, holder)

    def take_over(self, claim: Claim) -> None:
        """Have a claim in hand that depends on nobody's life, in place of the process that took it.

        Raises:
            ClaimLost: it is over, in part settled, or in other hands than when it was looked at.
        """
        from swarm.bus import taking

        box = self._box(claim.address)
        with os_errors(f"cannot take over a claim on {box.address}"):
            taking.take_over(box, self._machine, claim)

    # --- removing what is not kept --------------------------------------------------------------

    def _tidy(self, box: Box) -> None:
        """Remove what is too old, after so much was written to the readers' book that it was summed up."""
        if self._keep is None or not box.book.saved or time.monotonic() < self._tidied.get(box.address, 0.0):
            return
        from swarm.bus import retention
        from swarm.kit.errors import SwarmError

        box.book.saved = 0
        self._tidied[box.address] = time.monotonic() + _TIDY_EVERY
        try:
            retention.tidy(box, self._machine, self._keep)
            if self._saved is not None and os.path.isdir(box.blobs):
                sweep = self._sweep(self._saved)
                if sweep.is_due():
                    sweep.remove(self._keep(), self._machine.now_ms())
        except (OSError, SwarmError):  # what was asked for is done; this is for whoever comes next
            return

    def prune(self, address: str, keep: Keep, *, dry_run: bool = False) -> Pruned:
        """Remove what is settled and too old; only what fills whole files of the logs can go.

        Raises:
            InboxNotFound: there is no such box.
        """
        from swarm.bus import retention

        box = self._box(box_of(address))
        with os_errors(f"cannot remove what is too old in {box.address}"):
            return retention.prune(box, self._machine, keep, dry_run=dry_run)

    def prune_attachments(self, keep: Keep, *, dry_run: bool = False, after: Iterable[str] = ()) -> PrunedAttachments:
        """Remove the attachments that no message in any box refers to, if they are older than ``keep.least_ms``.

        Args:
            after: with *dry_run*, what would go after ``prune`` of these boxes.
        """
        from swarm.bus import retention
        from swarm.bus.protocol import PrunedAttachments as Found

        if self._saved is None:
            return Found(0, 0)
        now = self._machine.now_ms()
        with os_errors("cannot remove attachments"):
            if not dry_run:
                return self._sweep(self._saved).remove(keep, now)
            boxes = [self._box(box_of(one)) for one in after]
            without = {box.folder: retention.planned(box, self._machine, keep) for box in boxes}
            return self._sweep(self._saved).plan(keep, now, without)

    def _sweep(self, saved: Saved) -> Sweep:
        from swarm.bus.unused import Sweep

        return Sweep(self._root, saved, self._patience)

    def removed(self, address: str = "") -> int:
        """Return how many messages of a box, or of all, are not kept any longer."""
        from swarm.bus import view

        return sum(self._look(view.removed, address, lenient=True))

    def was_removed(self, message_id: str) -> bool:
        """Whether it is known that there was such a message, and that it is not kept any longer."""
        from swarm.bus import view

        def look(box: Box) -> bool:
            return bool(view.removed(box)) and view.is_noted(box, message_id)

        return any(self._look(look, lenient=True))

    def damaged(self, message_id: str) -> str:
        """Return where is kept what is left of a message that was damaged on the disk; empty when nothing is known."""
        from swarm.bus.choose import head_of

        wanted = message_id.encode("utf-8", "replace")

        def look(box: Box) -> str:
            heads = ((path, head_of(data)) for path, data in box.fragments())
            return next((path for path, head in heads if head and head[0] == wanted), "")

        return next(filter(None, self._look(look, lenient=True)), "")

    def unreadable(self) -> tuple[SwarmError, ...]:
        """Return why boxes cannot be looked into, one error for each; empty when all can."""
        from swarm.kit.errors import Interrupted, SwarmError

        found: list[SwarmError] = []

        def every_file(box: Box) -> bool:
            box.book.look()
            for log in box.lanes:
                log.whole_end()
            os.listdir(f"{box.folder}/bad")
            return True

        try:
            for _ in self._look(every_file, problems=found):
                pass
        except Interrupted:
            raise
        except SwarmError as error:  # nobody can say which there are
            return (error,)
        return tuple(found)

    def _look(
        self,
        look: Callable[[Box], T],
        address: str = "",
        *,
        lenient: bool = False,
        problems: list[SwarmError] | None = None,
    ) -> Iterator[T]:
        """Give what a look into a box finds, or into all of them, one after the other.

        Args:
            lenient: one that cannot be read keeps nobody from what is in the others; its error comes only when
                nothing is in them.
            problems: is told of those that cannot be read; they are passed over.
        """
        from swarm.bus.errors import InboxNotFound
        from swarm.kit.errors import Interrupted, SwarmError

        if address:
            yield self._look_into(box_of(address), look)
            return
        passed = [] if problems is None else problems
        is_found = False
        for one in self.addresses():
            try:
                found = self._look_into(one, look)
            except InboxNotFound:  # it was removed just now
                continue
            except Interrupted:
                raise
            except SwarmError as error:
                if not lenient and problems is None:
                    raise
                passed.append(error)
                continue
            is_found = is_found or bool(found)
            yield found
        if passed and problems is None and not is_found:
            raise passed[0]

    def _look_into(self, address: str, look: Callable[[Box], T]) -> T:
        box = self._box(address)
        with os_errors(f"cannot read {address}"), box.mutex:
            return look(box)

    # --- looking --------------------------------------------------------------------------------

    def _over(self, held: Held) -> str:
        """Return why a claim is over; empty while it is not."""
        from swarm.bus import taking

        return taking.over(held, self._machine)

    def claims(self, address: str) -> tuple[Claim, ...]:
        """Return the claims in flight; each can be settled by any process that knows it."""
        from swarm.bus import view

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            return tuple(view.claims(box, self._over))

    def depth(self, address: str) -> Depth:
        """Count what is in a box; claims that are over count as waiting."""
        from swarm.bus import view
        from swarm.bus.choose import age_ms
        from swarm.bus.protocol import Depth as Found

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            state = box.book.look()
            claimed = sum(len(held.places) for held in state.claims.values() if not self._over(held))
            pending = sum(state.pending(n, log.last_number()) for n, log in enumerate(box.lanes))
            oldest = view.oldest(box, state, lambda record: age_ms(record, self._machine))
            return Found(max(0, pending - claimed), claimed, len(state.dead), oldest)

    def peek(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return what is not settled, by lane, oldest first; changes nothing."""
        from swarm.bus import view

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            return tuple(view.peek(box, limit, self._over))

    def history(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages, whatever became of them, oldest first."""
        from swarm.bus import view

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            return tuple(view.history(box, limit, self._over))

    def dead(self, address: str) -> tuple[Stored, ...]:
        """Return the dead letters, oldest first."""
        from swarm.bus import view

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            return tuple(view.dead(box))

    def find(self, message_id: str, *, lenient: bool = False) -> tuple[Trace, ...]:
        """Return what became of a message in each box that it was sent to; empty when nobody knows it.

        Args:
            lenient: what is in a box that cannot be read is left out, unless nobody else knows the message.
        """
        from swarm.bus import view

        found = self._look(lambda box: view.trace(box, message_id, self._over), lenient=lenient)
        return tuple(trace for trace in found if trace is not None)

    def answers(self, address: str, message_id: str) -> tuple[Message, ...]:
        """Return what came into a box as an answer to a message."""
        from swarm.bus import view

        return tuple(
            one for found in self._look(lambda box: [*view.answers(box, message_id)], address) for one in found
        )

    def thread(self, thread_id: str) -> tuple[Stored, ...]:
        """Return the messages of a thread in all boxes, however long ago they were sent, and the one that began it."""
        from swarm.bus import view

        found = self._look(lambda box: [*view.thread(box, thread_id, self._over)], lenient=True)
        return tuple(one for several in found for one in several)

    def tasks(self, address: str, limit: int = 1000, *, settled: bool = False) -> tuple[Task, ...]:
        """Return what is not done, by lane, oldest first, dead letters last; with *settled* the last of all."""
        from swarm.bus import tasks

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            over = {name for name, held in box.book.look().claims.items() if self._over(held)}
            return tasks.look(box, limit, over, settled=settled)

    def requeue(self, address: str, message_id: str) -> None:
        """Let a dead letter wait again, at its old place, as if never tried.

        Raises:
            MessageNotFound: it is not among the dead letters.
        """
        from swarm.bus import taking

        box = self._box(box_of(address))
        with os_errors(f"cannot change {box.address}"):
            taking.requeue(box, self._machine, message_id)

    def record_event(self, address: str, message_id: str, event: str, evidence: str = "") -> None:
        """Write down that a message was ``nudged`` or ``seen``, and how one knows.

        Raises:
            MessageNotFound: there is no such message.
        """
        box = self._box(box_of(address))
        with os_errors(f"cannot change {box.address}"), box.mutex:
            if box.find(message_id) is None:
                from swarm.bus.errors import MessageNotFound

                raise MessageNotFound(f"no message {message_id[:60]!a} in {box.address}")
            entry = {"op": "event", "id": message_id, "event": event, "why": evidence, "t": self._machine.now_ms()}
            with box.book:
                box.book.add(entry)

    # --- attachments ----------------------------------------------------------------------------

    def attach(self, source: Path | bytes, name: str = "") -> dict[str, Any]:
        """Keep a copy of a file for ``Message.artifacts``; durable when this returns."""
        from pathlib import Path

        from swarm.bus import blobs

        with os_errors(f"cannot attach {name or source!s:.60}"):
            return blobs.keep(Path(self._root) / "blobs", source, name)

    def attachments_stay(self) -> AbstractContextManager[None]:
        """Let nobody remove an attachment during a block; to move a box in."""
        from swarm.bus import blobs

        return blobs.staying(self._root + "/blobs", self._patience)

    def attachment(self, artifact: dict[str, Any]) -> Path:
        """Return the kept copy after verifying it."""
        from pathlib import Path

        from swarm.bus import blobs

        with os_errors("cannot read the attachment"):
            return blobs.get(Path(self._root) / "blobs", artifact)
