"""Events to any number of watchers: one ring of the last events, and in it a place for each watcher.

    log of events on the disk ── one thread follows ──► ring ──► watchers, each at a place of its own
                └── pages, for who comes back with an old number ──────┘

A watcher costs a place, not a queue.  One that falls behind the ring is told ``lost`` and let go: it comes back with
the number that it has, and gets from the disk what it missed.  What the log itself lacks stands in it as a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from swarm import SwarmError
from swarm.api.data import event_data
from swarm.http_door.failures import Failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from swarm import LogEvent, LogPage
    from swarm.api.project_server import ProjectServer

#: So many events are kept, so many are read from the disk at once, and so much is sent in one piece.
KEPT, _PAGE, _PIECE = 4000, 500, 1 << 15
#: An idle stream says that it lives; the kernel tells of new events, and this is for where it does not.
_BEAT, _LOOK = 15.0, 5.0
_HEADERS = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no"))


def said(event: LogEvent) -> bytes:
    """Return an event as a stream says it."""
    return b"id: %d\ndata: %s\n\n" % (
        event.number,
        json.dumps(event_data(event), separators=(",", ":")).encode("ascii"),
    )


class Lost(Exception):  # of a watcher, not of a request
    """A watcher is behind the ring."""


class Ring:
    """The last events of a project.

    Attributes:
        watchers: how many follow.
    """

    def __init__(self, server: ProjectServer, kept: int = KEPT) -> None:
        self._server = server
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=kept)
        self._before = 0  # the number of the event before the first that is kept
        self._added = 0  # how many there were, to know places
        self._news: asyncio.Future[None] | None = None
        self._ended = threading.Event()
        self.watchers = 0

    async def begin(self) -> None:
        """Follow the log, from its newest event on."""
        loop = asyncio.get_running_loop()
        self._before = await asyncio.to_thread(self._newest)
        threading.Thread(target=self._follow, args=(loop, self._before), name="events", daemon=True).start()

    def close(self) -> None:
        """Let all watchers go."""
        self._ended.set()
        self.wake()

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self._kept[-1][0] if self._kept else self._before

    @property
    def place(self) -> int:
        """Where the next event will be."""
        return self._added

    # --- the log --------------------------------------------------------------------------------

    def _newest(self) -> int:
        with self._server.looking() as swarm:
            return swarm.events.last()

    def _follow(self, loop: asyncio.AbstractEventLoop, after: int) -> None:
        """Hand each event to the loop, until that has ended."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while not self._ended.is_set():
                try:
                    with self._server.looking() as swarm:
                        for event in swarm.events.follow(after, _LOOK):
                            loop.call_soon_threadsafe(self._add, event)
                            after = event.number
                except SwarmError as problem:
                    self._server.log.say("warning", f"cannot read the log of events: {problem}")
                    self._ended.wait(_LOOK)

    def _add(self, event: LogEvent) -> None:
        if event.number < self.last:  # the log was begun anew: places of before lead nowhere
            self._kept.clear()
            self._before = event.number
            self._added += 1
        if len(self._kept) == self._kept.maxlen:
            self._before = self._kept[0][0]
        self._kept.append((event.number, said(event)))
        self._added += 1
        self.wake()

    async def page(self, after: int, limit: int) -> LogPage:
        """Read a page of the log."""

        def read() -> LogPage:
            with self._server.looking() as swarm:
                return swarm.events.log(after, limit=limit)

        try:
            return await asyncio.to_thread(read)
        except SwarmError as problem:
            raise Failure("internal_error", "swarm cannot read the log of events") from problem

    # --- watchers -------------------------------------------------------------------------------

    def wake(self) -> None:
        """Let all watchers look."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        self._news = None

    async def wait(self, seconds: float) -> bool:
        """Wait until there is something; whether it came in time."""
        if self._news is None:
            self._news = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait([self._news], timeout=seconds)
        return bool(done)

    def find(self, after: int) -> int | None:
        """Return the place behind an event; None where the ring does not reach back to it, or not yet up to it."""
        if not self._before <= after <= self.last:
            return None
        first = self._added - len(self._kept)
        return first + sum(number <= after for number, _ in self._kept)

    def take(self, place: int) -> tuple[bytes, int]:
        """Return what comes at a place, in one piece, and the place behind it.

        Raises:
            Lost: it is not kept any more.
        """
        start = place - (self._added - len(self._kept))
        if start < 0:
            raise Lost
        piece = bytearray()
        for _, one in islice(self._kept, start, None):
            piece += one
            place += 1
            if len(piece) >= _PIECE:
                break
        return bytes(piece), place

    @property
    def has_ended(self) -> bool:
        """Whether the server ends."""
        return self._ended.is_set()


class Watch(Response):
    """A stream of events.

    Args:
        after: the number that the watcher has; None: it begins with the next event.
        is_let: whether the watcher may still follow.
    """

    def __init__(self, ring: Ring, after: int | None, is_let: Callable[[], bool]) -> None:
        super().__init__()
        self._ring = ring
        self._after = after
        self._is_let = is_let

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        """Send until the peer is gone, or the server ends."""
        transport = scope["state"]["connection"]
        begun = self._ring.place  # before anybody can know that this one watches
        self._ring.watchers += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            async for piece in self._pieces(begun):
                if transport.is_closing():
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except OSError:
            pass  # the peer is gone
        finally:
            self._ring.watchers -= 1

    async def _pieces(self, place: int | None) -> AsyncIterator[bytes]:
        ring = self._ring
        yield b"retry: 1000\n\n"
        if self._after is not None:
            async for piece in self._backlog(self._after):
                yield piece
            place = ring.find(self._after)
        while self._goes_on() and place is not None:
            try:
                piece, place = ring.take(place)
            except Lost:
                yield b"event: lost\ndata: {}\n\n"
                return
            if piece:
                yield piece
            elif not await ring.wait(_BEAT):
                yield b":\n\n"

    async def _backlog(self, after: int) -> AsyncIterator[bytes]:
        """Give what is behind a number on the disk, until the ring goes on from there."""
        while self._goes_on() and self._ring.find(after) is None:
            page = await self._ring.page(after, _PAGE)
            if page.events:
                yield b"".join(map(said, page.events))
                after = page.last
            elif not await self._ring.wait(_LOOK):  # the ring is a moment behind the disk
                yield b":\n\n"
            self._after = after

    def _goes_on(self) -> bool:
        return not self._ring.has_ended and self._is_let()
