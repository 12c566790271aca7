"""Look into boxes; nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.bus.boxes import Boxes
from swarm.bus.log.files import os_errors
from swarm.bus.message import box_of

if TYPE_CHECKING:
    from swarm.bus.box import Box
    from swarm.bus.message import Message
    from swarm.bus.protocol import (
        Claim,
        Depth,
        Stored,
        Task,
        Trace,
    )
    from swarm.bus.reader.state import OpenClaim
    from swarm.kit.errors import SwarmError


class Looking(Boxes):
    """Read boxes and the history of their messages."""

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
        """Return the file with the rest of a damaged message; empty if unknown."""
        from swarm.bus.reader.choose import head_of

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
            box.reader_log.look()
            for log in box.lanes:
                log.whole_end()
            os.listdir(f"{box.folder}/bad")
            return True

        try:
            for _ in self._look(every_file, problems=found):
                pass
        except Interrupted:
            raise
        except SwarmError as error:  # the boxes are unknown
            return (error,)
        return tuple(found)

    def _over(self, held: OpenClaim) -> str:
        """Return why a claim is over; empty while it is not."""
        from swarm.bus.reader.state import over

        return over(held, self._machine)

    def claims(self, address: str) -> tuple[Claim, ...]:
        """Return the claims in flight; any process that knows a claim can finish it."""
        from swarm.bus import view

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            return tuple(view.claims(box, self._over))

    def depth(self, address: str) -> Depth:
        """Count the messages in a box; those of ended claims count as waiting."""
        from swarm.bus import view
        from swarm.bus.protocol import Depth as Found
        from swarm.bus.reader.choose import age_ms

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            state = box.reader_log.look()
            claimed = sum(len(held.places) for held in state.claims.values() if not self._over(held))
            pending = sum(state.pending(n, log.last_number()) for n, log in enumerate(box.lanes))
            oldest = view.oldest(box, state, lambda record: age_ms(record, self._machine))
            return Found(max(0, pending - claimed), claimed, len(state.dead), oldest)

    def peek(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return the unfinished messages, by lane, oldest first; changes nothing."""
        from swarm.bus import view

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            return tuple(view.peek(box, limit, self._over))

    def history(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages in any state, oldest first."""
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
        """Return the history of a message in each box that it was sent to; empty for an unknown message.

        Args:
            lenient: what is in a box that cannot be read is left out, unless nobody else knows the message.
        """
        from swarm.bus import view

        found = self._look(lambda box: view.trace(box, message_id, self._over), lenient=lenient)
        return tuple(trace for trace in found if trace is not None)

    def answers(self, address: str, message_id: str) -> tuple[Message, ...]:
        """Return the messages in a box that answer a message."""
        from swarm.bus import view

        return tuple(
            one for found in self._look(lambda box: [*view.answers(box, message_id)], address) for one in found
        )

    def thread(self, thread_id: str) -> tuple[Stored, ...]:
        """Return the messages of a thread in all boxes, however long ago they were sent, and the one that began it."""
        from swarm.bus import view

        found = self._look(lambda box: [*view.thread(box, thread_id, self._over)], lenient=True)
        return tuple(one for several in found for one in several)

    def sent(self, sender: str, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages from one sender in all inboxes and queues, oldest first."""
        from swarm.bus import view

        def look(box: Box) -> list[Stored]:
            return [] if box.address.startswith("events.") else view.sent(box, sender, limit, self._over)

        every = [one for found in self._look(look, lenient=True) for one in found]
        return tuple(sorted(every, key=lambda one: one.message.time_ms)[-limit:])

    def tasks(self, address: str, limit: int = 1000, *, settled: bool = False) -> tuple[Task, ...]:
        """Return the open tasks, by lane, oldest first, dead letters last; *settled* adds finished ones."""
        from swarm.bus.reader import tasks

        box = self._box(box_of(address))
        with os_errors(f"cannot read {box.address}"), box.mutex:
            over = {name for name, held in box.reader_log.look().claims.items() if self._over(held)}
            return tasks.look(box, limit, over, settled=settled)
