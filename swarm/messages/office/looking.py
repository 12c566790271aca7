"""Look at messages, and prune old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.bus.errors import InboxNotFound
from swarm.bus.message import box_of
from swarm.kit.errors import Interrupted, SwarmError
from swarm.messages.office.base import PostBase
from swarm.messages.proof import checked_stored

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

    from swarm.bus.protocol import Depth, Pruned, PrunedAttachments, Stored, Trace
    from swarm.messages.deadlines import Reply


class Looking(PostBase):
    """Read inboxes and their history."""

    def inbox(self, name: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return the unfinished messages of an inbox, most urgent first; changes nothing."""
        return self._look(self.bus.peek, name, limit)

    def history(self, name: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages of an inbox, in any state."""
        return self._look(self.bus.history, name, limit)

    def dead(self, name: str | None = None) -> tuple[Stored, ...]:
        """Return the dead letters of an inbox, each with the reason."""
        return self._look(self.bus.dead, name)

    def outbox(self, name: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages that an agent or the user has sent, one for each recipient, oldest first."""
        address = self.address(name)
        known = {member.address: member.generation for member in self.members()}
        runs = ("", known.get(address, ""))  # an earlier agent of the same name is somebody else
        found = (one for one in self.bus.sent(address, limit) if one.message.sender_generation in runs)
        return tuple(checked_stored(self._state, one) for one in found)

    def depth(self, name: str | None = None) -> Depth:
        """Count the messages in an inbox."""
        from swarm.bus.protocol import Depth

        try:
            return self.bus.depth(self.address(name))
        except InboxNotFound:
            return Depth(0, 0, 0, 0)

    def _look(self, look: Any, name: str | None, *how: int) -> tuple[Stored, ...]:
        try:
            found: tuple[Stored, ...] = look(self.address(name), *how)
        except InboxNotFound:
            return ()
        return tuple(checked_stored(self._state, one) for one in found)

    def message(self, message_id: str) -> tuple[Trace, ...]:
        """Return all that is known of a message, once for each of its recipients.

        Raises:
            MessageNotFound
        """
        found = self.bus.find(message_id, lenient=True)
        if not found:
            raise self._not_found(message_id)
        return tuple(one._replace(stored=checked_stored(self._state, one.stored)) for one in found)

    def save_files(self, message_id: str, folder: str | Path) -> tuple[Path, ...]:
        """Copy a message's attachments into a folder and return the copies; replace no file.

        Raises:
            MessageNotFound
            AttachmentProblem: nothing is attached, or it cannot be copied.
        """
        from pathlib import Path

        from swarm.messages.office.attachments import save

        return save(self.bus, self.message(message_id)[0].stored.message, Path(folder))

    def reply(self, trace: Trace) -> Reply | None:
        """Return the state of the answer that a message expects; None if it expects none."""
        from swarm.messages.deadlines import reply_to

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
        """Prune finished old messages of one inbox; without a name of all.

        Args:
            older_than_ms: how old; default: as the settings say.

        Raises:
            NotForAgents, NotAPerson: only people remove messages.
        """
        from swarm.messages.office import pruned

        keep = pruned.rule(self.settings, older_than_ms)
        return pruned.prune(self.bus, self._prunable(name), keep, dry_run=dry_run)

    def prune_attachments(
        self, name: str | None = None, *, older_than_ms: int | None = None, dry_run: bool = False
    ) -> PrunedAttachments:
        """Remove the attachments that no message of anybody refers to any longer; to be called after ``prune``.

        Args:
            name, older_than_ms, dry_run: as for ``prune``; they tell which it would have removed.
        """
        from swarm.messages.office import pruned

        keep = pruned.rule(self.settings, older_than_ms)
        return pruned.prune_attachments(self.bus, self._prunable(name), keep, dry_run=dry_run)

    def _prunable(self, name: str | None) -> tuple[str, ...]:
        from swarm.callers import caller, rights

        attempt = "cannot remove messages"
        if self.me().outside:
            raise rights.for_people(attempt, self.me().outside)
        found = self._calling or caller.caller_of(self._state, self._environ, self._acting)
        rights.check_person(found, attempt)
        return self.bus.addresses() if name is None else (box_of(self.address(name)),)

    def unreadable(self, message_id: str = "") -> tuple[str, ...]:
        """Return the gaps of ``message`` and ``thread``: unreadable boxes, a damaged copy."""
        problems = tuple(error.message for error in self.bus.unreadable())
        try:
            damaged = self.bus.damaged(message_id) if message_id else ""
        except Interrupted:
            raise
        except SwarmError:  # of a box that is named already
            damaged = ""
        words = f"a copy of {message_id} was damaged on the disk; what is left of it: {damaged}"
        return (*problems, words) if damaged else problems

    def thread(self, message_id: str) -> tuple[Stored, ...]:
        """Return the messages that belong together with one of them, oldest first, one for each recipient."""
        from swarm.messages.office.threads import thread

        return thread(self.bus, message_id)

    def unread(self, addresses: Iterable[str]) -> dict[str, int]:
        """Return how many messages wait in each of some boxes; a box to which nothing was ever sent costs a look."""
        from swarm.machine.inbox_watch import Inbox, dropped

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
