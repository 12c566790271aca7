"""Remove old parts of a log in which every message is finished.

    choose, below the readers' lock ─► note them as gone ─► sync ══ gone ══► say where the log goes on ─► delete

swarm removes a part of a lane when every message in it is acknowledged, or is an old dead letter.  The sender of a dead
letter must have been notified, and no task may wait for it.  After a kill the next prune deletes the files.

The readers' log first gets a snapshot of its sum, and then starts there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.log.oldparts import OldParts, Part
from swarm.bus.protocol import Pruned
from swarm.bus.reader.choose import needs_of, unsettled
from swarm.bus.reader.state import dump
from swarm.bus.wire import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from swarm.bus.box import Box
    from swarm.bus.protocol import Keep, Machine
    from swarm.bus.reader.state import Lane, State

#: Maximum number of parts to remove while a reader waits.
_AT_ONCE = 8
_READER = len(PRIORITIES)
_FOLDERS = (*PRIORITIES, "reader")


class Old(NamedTuple):
    """A part, and of which lane it is; the readers' log comes after the lanes."""

    lane: int
    part: Part


def tidy(box: Box, machine: Machine, keep: Callable[[], Keep]) -> None:
    """Prune some old parts; reads only names when nothing is old."""
    if any(sum(file.endswith(".log") for file in os.listdir(f"{box.folder}/{name}")) > 1 for name in _FOLDERS):
        _Look(box, machine, keep()).remove(_AT_ONCE)


def prune(box: Box, machine: Machine, keep: Keep, *, dry_run: bool) -> Pruned:
    """Remove every message that is too old, also from parts still in use; return the removed ones."""
    look = _Look(box, machine, keep)
    return _sum(box, look.plan()) if dry_run else look.remove(close=True)


def planned(box: Box, machine: Machine, keep: Keep) -> list[tuple[int, int, int]]:
    """Return the parts of lanes that ``prune`` would remove: (lane, from, to)."""
    parts = _Look(box, machine, keep).plan()
    return [(old.lane, old.part.base, old.part.end) for old in parts if old.lane != _READER]


class _Look:
    """One look at one box."""

    def __init__(self, box: Box, machine: Machine, keep: Keep) -> None:
        self._box = box
        self._now = machine.now_ms()
        self._keep = keep
        self._logs = [OldParts(f"{box.folder}/{name}", box.patience) for name in _FOLDERS]
        self._needed: set[str] | None = None

    def plan(self) -> list[Old]:
        """Return the removals that ``remove`` would make."""
        with self._box.mutex:
            state = self._box.reader_log.look()
            return self._choose(state, [*self._old(), *self._closable(state)])

    def remove(self, most: int | None = None, *, close: bool = False) -> Pruned:
        """Prune old parts, or the first *most* of them.

        Args:
            close: let new parts begin, so that what was added to until now can go, too.
        """
        with self._box.mutex, self._box.reader_log as state:
            for old in self._closable(state) if close else ():
                self._box.lanes[old.lane].roll()
                self._box.lanes[old.lane].end()  # makes the new one
                self._logs[old.lane].set_time(old.part)  # closing it is no news
            found = self._old()
            chosen = self._choose(state, found)[:most]
            if chosen:
                self._note(state, chosen)
            leftover = [old for old in found if old.lane != _READER and _is_gone(state.lanes[old.lane], old.part)]
            # Also the notes of a killed process.
            handle = self._box.reader_log.handle() if chosen or leftover else None
        if handle is not None:
            handle.sync()
        for lane in {old.lane for old in leftover + chosen}:
            self._logs[lane].remove([old.part for old in {*leftover, *chosen} if old.lane == lane])
        return _sum(self._box, chosen)

    def _note(self, state: State, chosen: list[Old]) -> None:
        lanes = [(old.lane, old.part.base, old.part.end, old.part.records) for old in chosen if old.lane != _READER]
        entries: list[dict[str, Any]] = [{"op": "gone", "parts": lanes, "t": self._now}] if lanes else []
        self._box.reader_log.add(*entries)
        if len(lanes) < len(chosen):
            self._box.reader_log.add({"op": "sum", "state": dump(state), "t": self._now})

    # --- existing parts ---------------------------------------------------------------------------

    def _old(self) -> list[Old]:
        """Return the parts that nothing is added to any more."""
        return [Old(lane, part) for lane, log in enumerate(self._logs) for part in log.all()]

    def _closable(self, state: State) -> list[Old]:
        """Return the parts that are added to, but could be removed whole if they were not."""
        parts = [(lane, self._logs[lane].active()) for lane in range(_READER)]
        found = [Old(lane, part) for lane, part in parts if part is not None and self._is_over(state, lane, part)]
        return [old for old in found if self._is_too_old(old)]

    # --- what can go ------------------------------------------------------------------------------

    def _choose(self, state: State, found: Iterable[Old]) -> list[Old]:
        """Return the parts to remove, the oldest first."""
        excess = sum(log.total() for log in self._logs) - self._keep.octets if self._keep.octets else 0
        chosen = []
        for old in sorted(found, key=lambda old: old.part.time_ms):
            too_much = excess > 0 and old.part.time_ms <= self._now - self._keep.least_ms
            if (too_much or self._is_too_old(old)) and (
                old.lane == _READER
                or (not _is_gone(state.lanes[old.lane], old.part) and self._is_over(state, old.lane, old.part))
            ):
                chosen.append(old)
                excess -= old.part.size
        return chosen

    def _is_too_old(self, old: Old) -> bool:
        return old.part.time_ms <= self._now - self._keep.ms

    def _is_over(self, state: State, number: int, part: Part) -> bool:
        """Whether no reader will ever need a message of a part."""
        lane = state.lanes[number]
        if any(part.base <= at < part.end for at in lane.revived) or not _is_settled(lane, part):
            return False
        return all(
            grave.time_ms <= self._now - self._keep.ms and name not in state.owed and name not in self._names(state)
            for name, grave in state.dead.items()
            if grave.place.lane == number and part.base <= grave.place.at < part.end
        )

    def _names(self, state: State) -> set[str]:
        """Return the tasks that others wait for: a dead letter among them holds those back, so it must be known."""
        if self._needed is None:
            self._needed = set()
            for lane, log in enumerate(() if self._box.ordered else self._box.lanes):
                for line in unsettled(log, state.lanes[lane]):
                    self._needed.update(name for _, _, name in needs_of(line))
        return self._needed


def _is_settled(lane: Lane, part: Part) -> bool:
    position = max(part.begin, lane.low)
    while position < part.stop:
        after = lane.spans.skip(position)
        if after == position:
            return False
        position = after
    return True


def _is_gone(lane: Lane, part: Part) -> bool:
    return lane.gone.skip(part.base) >= part.end


def _sum(box: Box, chosen: Iterable[Old]) -> Pruned:
    messages = sum(old.part.records for old in chosen if old.lane != _READER)
    return Pruned(box.address, messages, sum(old.part.stop - old.part.begin for old in chosen))
