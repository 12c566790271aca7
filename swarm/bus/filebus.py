"""The message bus in files: no daemon, and no shared file is ever rewritten.

Order of locks: box (only for ids given by the sender) → lane → lane's folder; readers' lock → lane.
Nothing is synced below a lock but the first record of a part, and a snapshot.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from swarm.bus.log.files import os_errors
from swarm.bus.looking import Looking
from swarm.bus.message import box_of
from swarm.bus.sending import send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    from swarm.bus.box import Box
    from swarm.bus.keeping.unused import Saved, Sweep
    from swarm.bus.message import Message
    from swarm.bus.protocol import (
        Claim,
        Holder,
        Keep,
        Pruned,
        PrunedAttachments,
        Receipt,
    )

#: A process prunes a box after it wrote a snapshot, but at most once in this many seconds.
_TIDY_EVERY = 60.0


class FileBus(Looking):
    """The message bus in files: send, receive, finish and remove messages."""

    # --- sending --------------------------------------------------------------------------------

    def send(self, message: Message, *, durable: bool = True) -> Receipt:
        """Put a message into its recipient's box; with *durable* it is on the disk when this returns.

        After an error it may have arrived all the same; sent again with the same id it is one message.

        Raises:
            MessageProblem, QuotaReached, InboxNotFound: nothing was added.
            EnvironmentProblem: the disk is full or fails.
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
        from swarm.bus import notices
        from swarm.bus.reader import taking
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

    def expire(self, address: str) -> None:
        """Expire the messages of a box whose time to live is over, and notify their senders.

        Whoever takes does the same; this is for a box from which nobody takes.
        """
        from swarm.bus import notices
        from swarm.bus.reader import taking

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
        from swarm.bus.reader import taking

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
        from swarm.bus.reader import taking

        box = self._box(claim.address)
        with os_errors(f"cannot give back to {box.address}"):
            taking.nack(box, self._machine, claim, ids, delay, reason)

    def fail(self, claim: Claim, ids: tuple[str, ...] | None = None, *, reason: str) -> None:
        """Give up messages of a claim, all by default: they become dead letters, and their senders get a notice.

        Raises:
            ClaimLost: the claim is over.
        """
        from swarm.bus import notices
        from swarm.bus.reader import taking

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
        from swarm.bus.reader import taking

        box = self._box(claim.address)
        with os_errors(f"cannot extend a claim on {box.address}"):
            taking.extend(box, self._machine, claim, lease, holder)

    def take_over(self, claim: Claim) -> None:
        """Take over a claim that no process's life holds, from the process that took it.

        Raises:
            ClaimLost: it is over, in part settled, or in other hands than when it was looked at.
        """
        from swarm.bus.reader import taking

        box = self._box(claim.address)
        with os_errors(f"cannot take over a claim on {box.address}"):
            taking.take_over(box, self._machine, claim)

    # --- pruning ----------------------------------------------------------------------------------

    def _tidy(self, box: Box) -> None:
        """Prune the box after the reader log wrote a snapshot."""
        if self._keep is None or not box.reader_log.saved or time.monotonic() < self._tidied.get(box.address, 0.0):
            return
        from swarm.bus.keeping import retention
        from swarm.kit.errors import SwarmError

        box.reader_log.saved = 0
        self._tidied[box.address] = time.monotonic() + _TIDY_EVERY
        try:
            retention.tidy(box, self._machine, self._keep)
            if self._saved is not None and os.path.isdir(box.blobs):
                sweep = self._sweep(self._saved)
                if sweep.is_due():
                    sweep.remove(self._keep(), self._machine.now_ms())
        except (OSError, SwarmError):  # the request is done; the next process prunes instead
            return

    def prune(self, address: str, keep: Keep, *, dry_run: bool = False) -> Pruned:
        """Remove old finished messages, by whole files of the logs.

        Raises:
            InboxNotFound: there is no such box.
        """
        from swarm.bus.keeping import retention

        box = self._box(box_of(address))
        with os_errors(f"cannot prune {box.address}"):
            return retention.prune(box, self._machine, keep, dry_run=dry_run)

    def prune_attachments(self, keep: Keep, *, dry_run: bool = False, after: Iterable[str] = ()) -> PrunedAttachments:
        """Remove the attachments that no message in any box refers to, if they are older than ``keep.least_ms``.

        Args:
            after: with *dry_run*, what would go after ``prune`` of these boxes.
        """
        from swarm.bus.keeping import retention
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
        from swarm.bus.keeping.unused import Sweep

        return Sweep(self._root, saved, self._patience)

    # --- changing single messages -----------------------------------------------------------------------

    def requeue(self, address: str, message_id: str) -> None:
        """Let a dead letter wait again, at its old place, as if never tried.

        Raises:
            MessageNotFound: it is not among the dead letters.
        """
        from swarm.bus.reader import taking

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
            with box.reader_log:
                box.reader_log.add(entry)

    # --- attachments ----------------------------------------------------------------------------

    def attach(self, source: Path | bytes, name: str = "") -> dict[str, Any]:
        """Keep a copy of a file for ``Message.artifacts``; durable when this returns."""
        from pathlib import Path

        from swarm.bus.keeping import blobs

        with os_errors(f"cannot attach {name or source!s:.60}"):
            return blobs.keep(Path(self._root) / "blobs", source, name)

    def attachments_stay(self) -> AbstractContextManager[None]:
        """Prevent the removal of attachments during a block, so that a box can be moved."""
        from swarm.bus.keeping import blobs

        return blobs.staying(self._root + "/blobs", self._patience)

    def attachment(self, artifact: dict[str, Any]) -> Path:
        """Return the kept copy after verifying it."""
        from pathlib import Path

        from swarm.bus.keeping import blobs

        with os_errors("cannot read the attachment"):
            return blobs.get(Path(self._root) / "blobs", artifact)
