"""Put messages into a program's turns by its hooks: claim, deliver, confirm, acknowledge.

    claim ─► print ─► hand the claim over ─► exit 2 (the program wakes, or hears it with the next tool result)
      ─► the next hook event: is it in the prompt, or in the program's own record? ─► seen, acknowledged
      ─► the program is idle and has it nowhere, or not within the time: given back, and delivered again

A claim is held by the life of the process that waits, until it has printed what it took; then by the program's.  So
what is killed in between gives back at once.  What was put before an earlier life of the program is looked for in its
record, too, before it is delivered again.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from swarm.bus.errors import ClaimLost, MessageNotFound
from swarm.delivery import framing
from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.machine.tail import end_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from swarm.bus.message import Message
    from swarm.bus.protocol import Claim
    from swarm.messages.office.post import Post

_MOST = 20
_WAIT = 5.0
_LOOK_EVERY = 0.2
#: Time limit for delivered messages to appear in the program's record; a turn may have a long tool call first.
_PATIENCE = 900.0
#: Delivered messages that appear nowhere count as lost after the program was idle for this long.
_LOST_MS = 30_000
#: The same for a program that ends unless it is given more.
_SHORT_PATIENCE = 3.0
_LEASE = 3600.0
#: How much of the end of a record is read.
_TAIL = 8 << 20


class Turns:
    """Delivery to the program of the agent that this process belongs to.

    Args:
        lives: whether the program is still there.
        idle_since: since when it is idle by its own words, in milliseconds since 1970; 0: it is not, or nobody knows.
    """

    def __init__(
        self,
        post: Post,
        run_dir: str,
        event: Mapping[str, Any],
        lives: Callable[[], bool],
        idle_since: Callable[[], int] = lambda: 0,
    ) -> None:
        self._post = post
        self._run_dir = run_dir
        self._event = event
        self._lives = lives
        self._idle_since = idle_since
        self._record = str(event.get("transcript_path") or "")
        self._own: Claim | None = None

    def next(self) -> str:
        """Wait for messages and return the text for the program; empty when it has ended."""
        self._settle(time.monotonic() + _PATIENCE)
        words = ""
        while not words and self._lives():
            words = self._take(_WAIT)
        return words

    def at_once(self) -> str:
        """Return the text for the program now; empty when nothing waits."""
        self._settle(time.monotonic() + _SHORT_PATIENCE)
        return self._take(0.0)

    def hand_over(self) -> None:
        """Hand the printed messages over to the program; call it before this process ends."""
        if self._own is not None:
            with suppress(ClaimLost):
                self._post.hand_over(self._own, _LEASE)

    def _take(self, wait: float) -> str:
        taken = self._post.take(wait=wait, limit=_MOST, lease=_LEASE, hold=False)
        self._own = taken.claim if taken is not None and not taken.again else None
        fresh = self._without_known(taken.claim) if taken is not None else []
        return self._give(fresh) if taken is not None and fresh else ""

    def _give(self, messages: Sequence[Message]) -> str:
        ids = [message.id for message in messages]
        runfiles.write(self._run_dir, runfiles.GIVEN, {"ids": ids, "at_ms": _now_ms(), "record": self._record})
        return framing.batch(messages, self._post.me().address)

    # --- earlier deliveries ---------------------------------------------------------------------

    def _settle(self, deadline: float) -> None:
        """Acknowledge the last delivered messages once the program's record shows them; else release them."""
        claim = self._claim()
        while claim is not None and self._lives():
            left = [message.id for message in claim.messages if not self._is_known(message.id)]
            known = [message.id for message in claim.messages if message.id not in left]
            self._acknowledge(claim, known)
            if not left:
                return
            if time.monotonic() > deadline or is_lost(self._run_dir, left, self._record, self._idle_since):
                self._post.nack(left, reason="it did not appear in the program's turn")
                return
            time.sleep(_LOOK_EVERY)
            claim = self._claim()

    def _claim(self) -> Claim | None:
        """Return the claim of delivered messages, not of messages that the agent took itself."""
        return given_in_hand(self._run_dir, self._post.bus.claims(self._post.address()))

    def _without_known(self, claim: Claim) -> list[Message]:
        """Acknowledge the messages that the program's record already holds from an earlier run; return the rest."""
        known = [message.id for message in claim.messages if self._was_given(message.id) and self._is_known(message.id)]
        self._acknowledge(claim, known)
        return [message for message in claim.messages if message.id not in known]

    def _was_given(self, message_id: str) -> bool:
        return message_id in _given(self._run_dir)

    def _acknowledge(self, claim: Claim, ids: Sequence[str]) -> None:
        for one in ids:
            try:
                self._post.bus.record_event(claim.address, one, "seen", self._evidence(one))
            except MessageNotFound:
                continue
        if ids:
            try:
                self._post.bus.ack(claim, tuple(ids))
            except ClaimLost:
                return

    def _evidence(self, message_id: str) -> str:
        if framing.mark(message_id) in str(self._event.get("prompt") or ""):
            return "in the prompt of a turn"
        return "in the program's record of its conversation"

    def _is_known(self, message_id: str) -> bool:
        if framing.mark(message_id) in str(self._event.get("prompt") or ""):
            return True
        return framing.place_of(_tail(self._record), message_id) is framing.Place.HEARD


def given_in_hand(run_dir: str, claims: Iterable[Claim]) -> Claim | None:
    """Return the claim of the messages last delivered to the program of a run folder; None when it is finished."""
    mine = _given(run_dir)
    return next((claim for claim in claims if any(message.id in mine for message in claim.messages)), None)


def is_lost(run_dir: str, ids: Sequence[str], record: str, idle_since: Callable[[], int]) -> bool:
    """Whether the program has dropped delivered messages: it is idle for long, and has them nowhere.

    An idle program begins a turn with what it is given at once.  What still stands in its queue is not lost.

    Args:
        record: the file of its conversation; empty: the one that was named when it was given.
    """
    given = runfiles.read(run_dir, runfiles.GIVEN) or {}
    at_ms = given.get("at_ms")
    if not ids or not isinstance(at_ms, int) or _now_ms() - at_ms < _LOST_MS:
        return False
    since = idle_since()
    if not since or _now_ms() - since < _LOST_MS:
        return False
    end = _tail(record or str(given.get("record") or ""))
    return all(framing.place_of(end, one) is framing.Place.UNKNOWN for one in ids)


def _given(run_dir: str) -> frozenset[str]:
    ids = (runfiles.read(run_dir, runfiles.GIVEN) or {}).get("ids")
    return frozenset(one for one in ids if isinstance(one, str)) if isinstance(ids, list) else frozenset()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _tail(path: str) -> bytes:
    return end_of(path, _TAIL)


def program_lives(pid: int, start: int) -> Callable[[], bool]:
    """Return a check whether a program still runs."""
    return lambda: processes.is_alive(pid, start)
