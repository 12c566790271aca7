"""The state of a box's messages, summed from the reader log.

Pure: ``apply`` takes one entry of the readers' log after the other, in any process with the same
result.  Every entry stands for itself (an acknowledgement names its messages, not only its claim),
so an entry that was lost to a power cut takes no other with it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.log import lines
from swarm.bus.protocol import Holder, Place
from swarm.bus.wire import PRIORITIES

if TYPE_CHECKING:
    from typing import Any

    from swarm.bus.protocol import Machine

_REMEMBERED = 64


class OpenClaim(NamedTuple):
    """A claim in flight; ``up`` and ``lease`` are milliseconds since boot, ``since_ms`` is for people.

    Attributes:
        by: pid and start of the process that took it, where the claim depends on no life; else not written down.
    """

    holder: Holder
    up: int
    lease: int
    places: tuple[Place, ...]
    who: str = ""
    since_ms: int = 0
    by: tuple[int, int] = (0, 0)

    @property
    def taker(self) -> Holder | None:
        """The process that holds the claim."""
        holder = self.holder if self.holder.pid else self.holder._replace(pid=self.by[0], start=self.by[1])
        return holder if holder.pid else None


def over(held: OpenClaim, machine: Machine) -> str:
    """Return why a claim is over; "" while it is not."""
    holder = held.holder
    if holder.boot != machine.boot_id():
        return "the machine was restarted"
    if machine.up_ms() >= held.up + held.lease:
        return "its lease expired"
    if holder.pid and machine.start_of(holder.pid) != holder.start:
        return "its holder ended"
    return ""


class Grave(NamedTuple):
    """A dead letter."""

    place: Place
    reason: str
    time_ms: int


class FinishedRanges:
    """Finished ranges of a log, merged where they touch."""

    __slots__ = ("begins", "ends")

    def __init__(self, pairs: list[list[int]] | None = None) -> None:
        self.begins = [pair[0] for pair in pairs or ()]
        self.ends = [pair[1] for pair in pairs or ()]

    def add(self, begin: int, end: int) -> bool:
        """Add a part; False when it was there."""
        index = bisect_right(self.begins, begin)
        if index and self.ends[index - 1] >= end:
            return False
        if index and self.ends[index - 1] == begin:
            index -= 1
            self.ends[index] = end
        else:
            self.begins.insert(index, begin)
            self.ends.insert(index, end)
        if index + 1 < len(self.begins) and self.begins[index + 1] == end:
            self.ends[index] = self.ends.pop(index + 1)
            del self.begins[index + 1]
        return True

    def skip(self, at: int) -> int:
        """Return the end of the part that holds a place, or the place itself."""
        index = bisect_right(self.begins, at)
        return self.ends[index - 1] if index and self.ends[index - 1] > at else at

    def forget(self, upto: int) -> None:
        """Drop the parts that end before a place."""
        index = bisect_right(self.ends, upto)
        del self.begins[:index], self.ends[:index]

    def total(self) -> int:
        """Return how much they cover."""
        return sum(self.ends) - sum(self.begins)

    def pairs(self) -> list[list[int]]:
        """Return them for a snapshot."""
        return [list(pair) for pair in zip(self.begins, self.ends, strict=True)]


class Lane:
    """The finished part of a lane.

    Attributes:
        low: nothing before it waits, but for what is in *revived*.
        settled: how many of its messages are.
        revived: dead letters that wait again: place → size.
        damaged: what was set aside, and so is settled but was never done.
        gone: what is not kept any longer; the files may still be there.
        removed: how many messages that are.
    """

    __slots__ = ("damaged", "gone", "low", "removed", "revived", "settled", "spans")

    def __init__(self, low: int = 0, settled: int = 0) -> None:
        self.low = low
        self.settled = settled
        self.spans = FinishedRanges()
        self.revived: dict[int, int] = {}
        self.damaged = FinishedRanges()
        self.gone = FinishedRanges()
        self.removed = 0

    def settle(self, at: int, size: int) -> None:
        """Count a place as finished, once."""
        if self.revived.pop(at, None) is not None or (at >= self.low and self.spans.add(at, at + size)):
            self.settled += 1

    def is_settled(self, at: int) -> bool:
        """Whether the message at a place is acknowledged or dead."""
        return at not in self.revived and (at < self.low or self.spans.skip(at) > at)

    def advance(self, low: int) -> None:
        """Record that everything before *low* is finished."""
        self.low = low
        self.spans.forget(low)


class State:
    """All of it, for one box.

    Attributes:
        upto: how far the readers' log has been taken in.
        attempts: how many times a message has been handed out, while it is not settled.
        delayed: id → (place, until in ms since boot, boot).
        owed: dead letters whose senders have not been told yet.
        untold: damaged records of which nobody has been told yet: (lane, place).
        finished: the last claims that were acknowledged whole.
    """

    def __init__(self) -> None:
        self.upto = 0
        self.lanes = tuple(Lane() for _ in PRIORITIES)
        self.claims: dict[str, OpenClaim] = {}
        self.attempts: dict[str, int] = {}
        self.delayed: dict[str, tuple[Place, int, str]] = {}
        self.dead: dict[str, Grave] = {}
        self.owed: dict[str, Grave] = {}
        self.untold: list[tuple[int, int]] = []
        self.finished: list[str] = []
        self.generation = ""

    def apply(self, entry: dict[str, Any]) -> None:
        """Take in one entry of the readers' log; one that this version does not know changes nothing."""
        act = getattr(self, "_on_" + entry["op"], None)
        if act is not None:
            act(entry, [Place(*place) for place in entry.get("m", ())])

    def claimed(self) -> dict[tuple[int, int], str]:
        """Return the places of claimed messages: (lane, at) → claim."""
        return {(p.lane, p.at): claim for claim, held in self.claims.items() for p in held.places}

    def pending(self, lane: int, last_number: int) -> int:
        """Return the number of unfinished messages of a lane."""
        return max(0, last_number - self.lanes[lane].settled)

    def _on_claim(self, entry: dict[str, Any], places: list[Place]) -> None:
        held = OpenClaim(Holder(*entry["by"]), entry["up"], entry["lease"], tuple(places))
        more = {"who": entry.get("who", ""), "since_ms": entry.get("t", 0), "by": _process(entry)}
        self.claims[entry["claim"]] = held._replace(**more)
        for place in places:
            self.attempts[place.id] = self.attempts.get(place.id, 0) + 1
            self.delayed.pop(place.id, None)

    def _on_ack(self, entry: dict[str, Any], places: list[Place]) -> None:
        for place in places:
            self.lanes[place.lane].settle(place.at, place.size)
            self.attempts.pop(place.id, None)
            self.delayed.pop(place.id, None)
        self._shrink(entry["claim"], places)
        if entry["claim"] not in self.claims:
            self.finished = [*self.finished[1 - _REMEMBERED :], entry["claim"]]

    def _on_nack(self, entry: dict[str, Any], places: list[Place]) -> None:
        for place in places:
            if entry["until"]:
                self.delayed[place.id] = (place, entry["until"], entry["boot"])
        also = [Place(*place) for place in entry.get("also", ())]
        for place in also:  # not tried, only taken along
            self.attempts[place.id] = max(0, self.attempts.get(place.id, 0) - 1)
        self._shrink(entry["claim"], places + also)

    def _on_back(self, entry: dict[str, Any], _: list[Place]) -> None:
        self.claims.pop(entry["claim"], None)

    def _on_extend(self, entry: dict[str, Any], _: list[Place]) -> None:
        held = self.claims.get(entry["claim"])
        if held is not None:
            holder = Holder(*entry["by"]) if "by" in entry else held.holder
            self.claims[entry["claim"]] = held._replace(holder=holder, up=entry["up"], lease=entry["lease"])

    def _on_over(self, entry: dict[str, Any], _: list[Place]) -> None:
        held = self.claims.get(entry["claim"])
        if held is not None:
            self.claims[entry["claim"]] = held._replace(by=_process(entry))

    def _on_dead(self, entry: dict[str, Any], places: list[Place]) -> None:
        for place in places:
            self.lanes[place.lane].settle(place.at, place.size)
            self.attempts.pop(place.id, None)
            self.delayed.pop(place.id, None)
            self.dead[place.id] = self.owed[place.id] = Grave(place, entry["why"], entry["t"])
        self._shrink(entry.get("claim", ""), places)

    def _on_told(self, entry: dict[str, Any], _: list[Place]) -> None:
        self.owed.pop(entry["id"], None)

    def _on_requeue(self, _: dict[str, Any], places: list[Place]) -> None:
        for place in places:
            lane = self.lanes[place.lane]
            if self.dead.pop(place.id, None) is not None and lane.is_settled(place.at):
                self.owed.pop(place.id, None)
                lane.revived[place.at] = place.size
                lane.settled -= 1

    def _on_bad(self, entry: dict[str, Any], _: list[Place]) -> None:
        lane = self.lanes[entry["lane"]]
        if entry["at"] >= lane.low and lane.spans.add(entry["at"], entry["at"] + entry["size"]):
            lane.settled += 1
            lane.damaged.add(entry["at"], entry["at"] + entry["size"])
            self.untold.append((entry["lane"], entry["at"]))

    def _on_reported(self, entry: dict[str, Any], _: list[Place]) -> None:
        self.untold = [one for one in self.untold if one != (entry["lane"], entry["at"])]

    def _on_count(self, entry: dict[str, Any], _: list[Place]) -> None:
        self.lanes[entry["lane"]].settled = entry["settled"]

    def _on_gone(self, entry: dict[str, Any], _: list[Place]) -> None:
        for lane, at, end, count in entry["parts"]:
            if self.lanes[lane].gone.add(at, end):
                self.lanes[lane].removed += count
            for message_id, grave in list(self.dead.items()):
                if grave.place.lane == lane and at <= grave.place.at < end:
                    del self.dead[message_id]
                    self.owed.pop(message_id, None)

    def _on_sum(self, entry: dict[str, Any], _: list[Place]) -> None:
        """Start from a snapshot: earlier lines of the log may be gone, or not read yet."""
        vars(self).update(vars(load(entry["state"])))

    def _on_open(self, entry: dict[str, Any], _: list[Place]) -> None:
        self.generation = entry["generation"]

    def _shrink(self, claim: str, places: list[Place]) -> None:
        held = self.claims.get(claim)
        if held is not None:
            gone = {(p.lane, p.at) for p in places}
            left = tuple(p for p in held.places if (p.lane, p.at) not in gone)
            if left:
                self.claims[claim] = held._replace(places=left)
            else:
                del self.claims[claim]


def _process(entry: dict[str, Any]) -> tuple[int, int]:
    pid, start = entry.get("taker", (0, 0))
    return pid, start


# --- as JSON ---------------------------------------------------------------------------------------


def dump(state: State) -> dict[str, Any]:
    """Return the JSON shape of a state."""
    return {
        "upto": state.upto,
        "lanes": [_dump_lane(lane) for lane in state.lanes],
        "claims": state.claims,
        "attempts": state.attempts,
        "delayed": state.delayed,
        "dead": state.dead,
        "owed": list(state.owed),
        "untold": state.untold,
        "finished": state.finished,
        "generation": state.generation,
    }


def _dump_lane(lane: Lane) -> list[Any]:
    revived, gone = list(lane.revived.items()), lane.gone.pairs()
    return [lane.low, lane.settled, lane.spans.pairs(), revived, lane.damaged.pairs(), gone, lane.removed]


def load(data: dict[str, Any]) -> State:
    """Read a state back."""
    state = State()
    state.upto = data["upto"]
    for lane, (low, settled, pairs, revived, damaged, *gone) in zip(state.lanes, data["lanes"], strict=True):
        lane.low, lane.settled, lane.spans = low, settled, FinishedRanges(pairs)
        lane.revived = {at: size for at, size in revived}  # noqa: C416  # dict() of lists is not typed
        lane.damaged = FinishedRanges(damaged)
        if gone:
            lane.gone, lane.removed = FinishedRanges(gone[0]), gone[1]
    for claim, (holder, up, lease, places, *rest) in data["claims"].items():
        held = OpenClaim(Holder(*holder), up, lease, tuple(Place(*p) for p in places), *rest)
        state.claims[claim] = held._replace(by=(held.by[0], held.by[1]))
    state.attempts = data["attempts"]
    state.delayed = {i: (Place(*p), until, boot) for i, (p, until, boot) in data["delayed"].items()}
    state.dead = {i: Grave(Place(*p), reason, t) for i, (p, reason, t) in data["dead"].items()}
    state.owed = {i: state.dead[i] for i in data["owed"] if i in state.dead}
    state.untold = [(lane, at) for lane, at in data.get("untold", ())]
    state.finished = data["finished"]
    state.generation = data["generation"]
    return state


def snapshot(folder: str) -> State:
    """Return the state that a box's snapshot tells; without a good one the log tells everything from its beginning."""
    try:
        with open(folder + "/reader.state", "rb") as file:
            data = file.read()
        if lines.verify(data[:-1]) == 0:
            return load(json.loads(data))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return State()
