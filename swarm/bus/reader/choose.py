"""Choose the next messages to hand out.

The most urgent lane first, each lane in its order.  In an inbox no message overtakes an earlier one
of the same sender: an urgent message notes at its sending where the less urgent lanes ended, and
whatever its sender has waiting before those ends goes out first, lifted to the same urgency.  (To
put the urgent message *behind* them instead would let it wait for other senders' messages too.)
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.errors import MessageProblem
from swarm.bus.message import Message, from_record
from swarm.bus.protocol import MAX_ATTEMPTS, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from swarm.bus.log.log import Log
    from swarm.bus.log.part import Line
    from swarm.bus.protocol import Machine
    from swarm.bus.reader.state import Lane, State

_BEGIN, _NEXT, _TYPE = b'{"schema":1,"id":"', b'","from":"', b'","type":"'
_FAR = 1 << 16
#: From then on a message is handed out alone, so that it takes no other with it.
_SUSPECT = 2


class Picked(NamedTuple):
    """A message to be handed out."""

    place: Place
    message: Message


def place_of(lane: int, line: Line) -> Place | None:
    """Return the place of a record; None when it is no message."""
    head = head_of(line.data) if line.number >= 0 else None
    return head and Place(lane, line.at, line.end - line.at, head[0].decode(), head[1].decode())


def head_of(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the id and the sender that a record begins with; None when it does not begin like a message."""
    if not data.startswith(_BEGIN):
        return None
    middle = data.find(_NEXT, len(_BEGIN))
    end = data.find(b'"', middle + len(_NEXT))
    if middle < 0 or end < 0:
        return None
    name, sender = data[len(_BEGIN) : middle], data[middle + len(_NEXT) : end]
    if not name or not sender or b'"' in name or b"\\" in name or b"\\" in sender:
        return None
    return name, sender


def type_of(line: Line) -> bytes:
    """Return the type of the message in a record; sender and recipient, before it, hold nothing that could be it."""
    return line.data.partition(_TYPE)[2].partition(b'"')[0]


def ids_in(data: bytes) -> list[bytes]:
    """Return the ids of the messages in a piece of a lane."""
    return [piece[: piece.find(b'"')] for piece in data.split(_BEGIN)[1:]]


def unsettled(log: Log, lane: Lane, stop: int = 1 << 62) -> Iterator[Line]:
    """Yield the unfinished records of a lane, in order; fresh ones only before *stop*."""
    revived = sorted(lane.revived.items(), reverse=True)
    for line in _fresh(log, lane, stop):
        while revived and revived[-1][0] < line.at:
            yield log.one(*revived.pop())
        yield line
    while revived:
        yield log.one(*revived.pop())


def _fresh(log: Log, lane: Lane, stop: int) -> Iterator[Line]:
    """Yield records that were never finished; advances the low-water mark of the lane."""
    position = lane.spans.skip(lane.low)
    leading = True  # nothing unsettled seen yet
    jumped = True
    while jumped:
        jumped = False
        for line in log.read(position):
            if line.at >= stop:
                break
            settled_to = lane.spans.skip(line.at)
            position = max(line.end, settled_to)
            if settled_to == line.at:
                if leading:
                    lane.advance(line.at)
                    leading = False
                yield line
            elif settled_to - line.end > _FAR:
                jumped = True
                break
    if leading:
        lane.advance(max(lane.low, position))


def age_ms(record: dict[str, Any], machine: Machine) -> int:
    """Return the age of a message: by the monotonic clock, if it was sent in this boot."""
    sent = record.get("bus", {})
    up = machine.up_ms()
    if sent.get("boot") == machine.boot_id():
        return max(0, up - int(sent["up"]))
    apart = machine.now_ms() - int(record.get("time", 0))
    return max(apart, up) if "boot" in sent else max(0, apart)


#: (lane, place) of a message → (lane, place, id) of each that must be done before it.
Needs = dict[tuple[int, int], tuple[tuple[int, int, str], ...]]
_MOST_NEEDS = 1 << 16


def waits_for(state: State, needs: Needs, place: Place, line: Line) -> list[str]:
    """Return the ids of the unfinished tasks on which a queued task waits."""
    known = needs.get((place.lane, place.at))
    if known is None:
        known = needs_of(line)
        if len(needs) < _MOST_NEEDS:
            needs[place.lane, place.at] = known
    return [name for lane, at, name in known if not is_done(state, lane, at, name)]


def needs_of(line: Line) -> tuple[tuple[int, int, str], ...]:
    """Return the dependencies of a message."""
    try:
        record = json.loads(line.data)
    except ValueError:
        return ()
    places = record.get("bus", {}).get("needs", ())
    return tuple((lane, at, name) for (lane, at), name in zip(places, record.get("after", ()), strict=False))


def is_done(state: State, lane: int, at: int, name: str) -> bool:
    """Whether a message was acknowledged: finished, and neither dead nor damaged."""
    one = state.lanes[lane]
    return one.is_settled(at) and name not in state.dead and one.damaged.skip(at) == at


class Chooser:
    """One choice of messages, made below the readers' lock.

    Attributes:
        needs: what messages of a queue wait for, as far as it was looked up: kept by the caller for the next time.
        entries: what the choice found to be dead or damaged, for the reader log.
        damaged: the lines behind those entries that are to be set aside.
        due_ms: when, in ms since boot, a delay ends that holds something back now.
    """

    def __init__(
        self,
        logs: tuple[Log, ...],
        state: State,
        machine: Machine,
        *,
        ordered: bool,
        clear: dict[tuple[str, int], int],
        needs: Needs,
    ) -> None:
        self._logs = logs
        self._needs = needs
        self._state = state
        self._machine = machine
        self._ordered = ordered
        self._clear = clear
        self._taken = set(state.claimed())
        self.entries: list[dict[str, Any]] = []
        self.damaged: list[tuple[int, Line]] = []
        self.due_ms = 0
        self._types: tuple[bytes, ...] = ()
        self._wanted: Callable[[Message], bool] | None = None
        self._held: set[str] = set()
        boot, up = machine.boot_id(), machine.up_ms()
        for message_id, (place, until, when) in state.delayed.items():
            if when == boot and until > up:
                self._held.add(place.sender if ordered else message_id)
                self.due_ms = min(self.due_ms or until, until)

    def only(self, types: tuple[str, ...], wanted: Callable[[Message], bool] | None) -> None:
        """Skip messages of other types or without *wanted*; for boxes without an order."""
        self._types = tuple(one.encode() for one in types)
        self._wanted = wanted

    def choose(self, limit: int) -> list[Picked]:
        """Return up to *limit* messages in the order in which they are to be done."""
        picked: list[Picked] = []
        # Senders go on sending meanwhile.  What a message must not overtake is before these ends, because
        # they are noted from the least urgent lane upwards; or else it is what the message itself notes.
        # Ends of whole lines: behind them may lie what a killed writer left, and what is sent later takes its place.
        ends = [log.whole_end() for log in reversed(self._logs)][::-1]
        for lane, log in enumerate(self._logs):
            nothing = True
            for line in unsettled(log, self._state.lanes[lane], ends[lane]):
                nothing = False
                place = place_of(lane, line)
                if place is None:
                    if (lane, line.at) not in self._taken:  # else its holder got it whole
                        self._set_aside(lane, line)
                elif not self._passed_over(place, line) and self._take(place, line, picked, limit):
                    return picked
            if nothing:
                self._recount(lane, ends[lane])
        return picked

    def bury_expired(self) -> None:
        """Make expired messages dead letters, also those whose turn has not come."""
        for lane, log in enumerate(self._logs):
            for line in unsettled(log, self._state.lanes[lane], log.whole_end()):
                if b'"ttl_ms":' not in line.data or (lane, line.at) in self._taken:
                    continue
                place = place_of(lane, line)
                record = self._read(place, line) if place is not None else None
                if place is not None and record is not None and (why := self._too_old(place, *record)):
                    self._bury(place, why)

    def _recount(self, lane: int, end: int) -> None:
        """Correct the count of finished messages of a finished lane: damage may have cost some their numbers."""
        log = self._logs[lane]
        number = log.last_number()
        if number != self._state.lanes[lane].settled and log.whole_end() == end:  # else the last one came just now
            self.entries.append({"op": "count", "lane": lane, "settled": number, "t": self._machine.now_ms()})

    def settled(self) -> tuple[Place, ...]:
        """Return the places of dead and damaged messages."""
        dead = [place for entry in self.entries for place in entry.get("m", ())]
        return (*dead, *(Place(lane, line.at, line.end - line.at, "", "") for lane, line in self.damaged))

    def _passed_over(self, place: Place, line: Line) -> bool:
        if (place.lane, place.at) in self._taken or (place.sender if self._ordered else place.id) in self._held:
            return True
        if (self._types and type_of(line) not in self._types) or not self._is_wanted(place, line):
            return True
        if self._ordered or b'"needs":' not in line.data or not waits_for(self._state, self._needs, place, line):
            return False
        if b'"ttl_ms":' in line.data:  # its time runs out while it waits, too; all else is asked when its turn comes
            record = self._read(place, line)
            if record is not None and (why := self._too_old(place, *record)):
                self._bury(place, why)
        return True

    def _is_wanted(self, place: Place, line: Line) -> bool:
        if self._wanted is None:
            return True
        read = self._read(place, line)
        return read is not None and self._wanted(read[1])

    def _take(self, wanted: Place, line: Line, picked: list[Picked], limit: int) -> bool:
        """Pick a message, after those that must go before it; True when no more may be picked."""
        while (wanted.lane, wanted.at) not in self._taken:
            place, first = self._first(wanted, line) if self._ordered else (wanted, line)
            attempts = self._state.attempts.get(place.id, 0)
            if picked and _SUSPECT <= attempts < MAX_ATTEMPTS:
                return True
            self._taken.add((place.lane, place.at))
            message = self._alive(place, first, attempts)
            if message is not None:
                picked.append(Picked(place, message))
                if len(picked) >= limit or attempts >= _SUSPECT:
                    return True
        return False

    def _first(self, place: Place, line: Line) -> tuple[Place, Line]:
        """Return the sender's first message that waits ahead of this one in a less urgent lane, else this one."""
        if b'"after":' in line.data:
            for lane, upto in json.loads(line.data).get("bus", {}).get("after", ()):
                earlier = self._waiting_of(place.sender, lane, upto)
                if earlier is not None:
                    return self._first(*earlier)
        return place, line

    def _waiting_of(self, sender: str, index: int, upto: int) -> tuple[Place, Line] | None:
        lane, log = self._state.lanes[index], self._logs[index]
        for at, size in sorted(lane.revived.items()):
            place = place_of(index, line := log.one(at, size))
            if at < min(upto, lane.low) and place and place.sender == sender and (index, at) not in self._taken:
                return place, line
        begin = lane.low if lane.revived else max(lane.low, self._clear.get((sender, index), 0))
        clear = upto
        for line in log.search(f'"from":"{sender}"'.encode(), begin, upto):
            place = place_of(index, line)
            if place is None or place.sender != sender or lane.is_settled(place.at):
                continue
            clear = min(clear, place.at)
            if (index, place.at) not in self._taken:
                self._clear[sender, index] = clear
                return place, line
        self._clear[sender, index] = clear
        return None

    def _alive(self, place: Place, line: Line, attempts: int) -> Message | None:
        """Return the message, or None after noting why it is a dead letter."""
        read = self._read(place, line)
        if read is None:
            return None
        _, message = read
        current = self._state.generation
        if attempts >= MAX_ATTEMPTS:
            why = f"it was handed out {attempts} times and never acknowledged"
        elif message.generation and current and message.generation != current:
            why = f"it was for {message.generation}, an earlier run of its recipient"
        else:
            why = self._too_old(place, *read)
        if why:
            self._bury(place, why)
            return None
        return message

    def _read(self, place: Place, line: Line) -> tuple[dict[str, Any], Message] | None:
        try:
            record = json.loads(line.data)
            return record, from_record(record)
        except (ValueError, MessageProblem) as error:
            self._bury(place, f"it cannot be read: {error}")
            return None

    def _too_old(self, place: Place, record: dict[str, Any], message: Message) -> str:
        """Return the reason why a message has expired; a requeued message never expires."""
        if place.at in self._state.lanes[place.lane].revived:
            return ""
        late = message.ttl_ms and age_ms(record, self._machine) >= message.ttl_ms
        return f"it was not taken within {message.ttl_ms} ms" if late else ""

    def _bury(self, place: Place, why: str) -> None:
        self.entries.append({"op": "dead", "why": why, "t": self._machine.now_ms(), "m": [place]})

    def _set_aside(self, lane: int, line: Line) -> None:
        entry = {"op": "bad", "lane": lane, "at": line.at, "size": line.end - line.at, "t": self._machine.now_ms()}
        self.entries.append(entry)
        self.damaged.append((lane, line))
