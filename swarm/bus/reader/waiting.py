"""How many messages wait in a box, counted as ``depth`` does: for supervisors, so with the standard library alone.

Listings count by it, too: they look at many boxes, and need nothing else of the engine.

No lock is taken and nothing is written; what a reader does meanwhile counts or does not.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from swarm.bus.log import lines
from swarm.bus.log.part import whole_lines
from swarm.bus.machine import ThisMachine
from swarm.bus.reader.state import over, snapshot
from swarm.bus.wire import PRIORITIES
from swarm.machine import own
from swarm.machine.inbox_watch import Inbox, dropped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.bus.protocol import Machine

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_ACTIVE = "active.log"


def unread(folder: str) -> int | None:
    """Return how many messages wait in a box and its drop folder; None where it cannot be read."""
    inbox = Inbox(folder)
    if not folder or not inbox.is_made() or inbox.is_fresh():
        return 0
    try:
        return waiting(folder) + len(dropped(folder))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def waiting(folder: str, machine: Machine | None = None) -> int:
    """Return how many messages of a box are neither finished nor held by a reader.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    state = snapshot(folder)
    for data in _entries(f"{folder}/reader", state.upto):
        state.apply(json.loads(data))
    here = machine or ThisMachine()
    held = sum(len(claim.places) for claim in state.claims.values() if not over(claim, here))
    pending = sum(state.pending(n, _last_number(f"{folder}/{lane}")) for n, lane in enumerate(PRIORITIES))
    return max(0, pending - held)


def _last_number(folder: str) -> int:
    """Return the number of the last whole record of a log."""
    fd = own.open(f"{folder}/{_ACTIVE}", _READ)
    try:
        number = lines.last_number(os.pread, fd, os.fstat(fd).st_size)
        if number < 0:  # a writer is at it, or was killed
            number = 0
            for line in whole_lines(fd, 0, 0):
                number = line.number if line.number >= 0 else number + 1
    finally:
        os.close(fd)
    return number


def _entries(folder: str, start: int) -> Iterator[bytes]:
    """Give the records of a log from a place on."""
    active = own.open(f"{folder}/{_ACTIVE}", _READ)  # first: what is rolled meanwhile is still read through it
    try:
        base = _base(active)
        older = sorted(int(name[:-4]) for name in own.listdir(folder) if name[:-4].isdigit() and name[-4:] == ".log")
        for begin, end in zip(older, [*older[1:], base], strict=False):
            if begin < base and start < end:
                part = own.open(f"{folder}/{begin:019d}.log", _READ)
                try:
                    yield from _records(part, max(0, start - begin))
                finally:
                    os.close(part)
        yield from _records(active, max(0, start - base))
    finally:
        os.close(active)


def _records(fd: int, offset: int) -> Iterator[bytes]:
    for line in whole_lines(fd, 0, offset):
        if line.number >= 0 and not line.data.startswith(b'{"log":'):  # a damaged one has lost its effect
            yield line.data


def _base(fd: int) -> int:
    """Return at which place of its log a part begins."""
    head = os.pread(fd, 256, 0).partition(b"\n")[0]
    if lines.verify(head) < 0:
        raise ValueError("the head of a log is damaged")
    return int(head[len(lines.HEAD) :].partition(b",")[0])
