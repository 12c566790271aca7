"""What the contract of the bus is tried on: engines, a machine whose clocks are set by hand, and a reference.

``MemoryBus`` is the promise in its plainest form: one list per box, searched from the start each
time.  It passes the same suite as the real engine, so the two may be compared with each other.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from swarm.bus.box import Limits
from swarm.bus.errors import ClaimLost, IdTaken, InboxNotFound, MessageNotFound, MessageProblem, QuotaReached
from swarm.bus.filebus import FileBus
from swarm.bus.message import DEAD_LETTER, OWN_IDS, POSTMASTER, Message, box_of, encode, new_id
from swarm.bus.protocol import MAX_ATTEMPTS, Claim, Depth, Event, Holder, Place, Receipt, Stored, Task, Trace
from swarm.bus.wire import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.bus.protocol import Tasks


@dataclass
class FakeMachine:
    """A machine whose boot, clocks and processes are set by hand."""

    boot: str = "boot-1"
    up: int = 1_000_000
    now: int = 1_700_000_000_000
    alive: dict[int, int] = field(default_factory=lambda: {100: 1, 200: 2})

    def boot_id(self) -> str:
        return self.boot

    def up_ms(self) -> int:
        return self.up

    def now_ms(self) -> int:
        return self.now

    def start_of(self, pid: int) -> int | None:
        return self.alive.get(pid)

    def holder(self, pid: int = 100) -> Holder:
        return Holder(self.boot, pid, self.alive.get(pid, 0))

    def pass_time(self, seconds: float) -> None:
        self.up += int(seconds * 1000)
        self.now += int(seconds * 1000)

    def reboot(self) -> None:
        self.boot += "'"
        self.up = 5_000
        self.alive = {pid: start + 1000 for pid, start in self.alive.items()}


class Rig(Protocol):
    """An engine under test."""

    machine: FakeMachine

    def open(self, limits: Limits = ...) -> Tasks: ...


class FileRig:
    def __init__(self, root: Path) -> None:
        self.machine = FakeMachine()
        self.root = root

    def open(self, limits: Limits = Limits()) -> Tasks:  # noqa: B008
        return FileBus(self.root, self.machine, limits)


class MemoryRig:
    def __init__(self, _: Path) -> None:
        self.machine = FakeMachine()
        self._bus: MemoryBus | None = None

    def open(self, limits: Limits = Limits()) -> Tasks:  # noqa: B008
        if self._bus is None:
            self._bus = MemoryBus(self.machine, limits)
        return self._bus


RIGS: dict[str, Callable[[Path], Rig]] = {"files": FileRig, "memory": MemoryRig}


# --- the reference ---------------------------------------------------------------------------------


@dataclass
class _Item:
    message: Message
    lane: int
    number: int
    place: Place
    sent: tuple[str, int]
    state: str = "queued"
    attempts: int = 0
    reason: str = ""
    delayed: tuple[str, int] = ("", 0)
    events: list[Event] = field(default_factory=list)
    who: str = ""
    since: int = 0
    note: str = ""
    requeued: bool = False


@dataclass
class _Held:
    holder: Holder
    until: int
    items: list[_Item]
    who: str
    since: int


@dataclass
class _Box:
    ordered: bool
    generation: str = ""
    items: list[_Item] = field(default_factory=list)
    claims: dict[str, _Held] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)


class MemoryBus:
    """The bus as lists."""

    def __init__(self, machine: FakeMachine, limits: Limits) -> None:
        self._machine = machine
        self._limits = limits
        self._boxes: dict[str, _Box] = {}

    def declare(self, address: str, *, generation: str = "") -> None:
        name = box_of(address)
        self._boxes.setdefault(name, _Box(name.startswith("inbox"))).generation = generation

    def remove(self, address: str) -> None:
        self._box(address)
        del self._boxes[box_of(address)]

    def _box(self, address: str) -> _Box:
        name = box_of(address)
        if name not in self._boxes:
            raise InboxNotFound(f"there is no {name}")
        return self._boxes[name]

    def send(self, message: Message, *, durable: bool = True) -> Receipt:
        m = message._replace(id=message.id or new_id(), time_ms=message.time_ms or self._machine.now)
        size = len(encode(m))
        if "." in message.id and message.id.partition(".")[0] in OWN_IDS and m.sender != POSTMASTER:
            raise MessageProblem("an id of swarm's own")
        name = box_of(m.to)
        box = self._box(name)
        for item in box.items:
            if item.message.id == m.id:
                if not _is_same(m, item.message):
                    raise IdTaken("the id is taken")
                return Receipt(m.id, name, item.message.priority, item.number, durable, duplicate=True)
        known = {item.message.id for item in box.items}
        if not known.issuperset(m.after):
            raise MessageNotFound("there is no such message to wait for")
        pending = [item for item in box.items if item.state not in ("acked", "dead")]
        if len(pending) >= self._limits.messages or sum(i.place.size for i in pending) + size > self._limits.octets:
            raise QuotaReached(f"{name} is full")
        lane = PRIORITIES.index(m.priority)
        number = 1 + sum(item.lane == lane for item in box.items)
        place = Place(lane, len(box.items), size, m.id, m.sender)
        box.items.append(_Item(m, lane, number, place, (self._machine.boot, self._machine.up)))
        return Receipt(m.id, name, m.priority, number, durable)

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
        box = self._box(address)
        if box.ordered and (types or wanted):
            raise MessageProblem("an inbox has an order")
        self._take_back(box)
        if box.ordered and box.claims:
            return None
        chosen, dead = self._choose(
            box, limit, lambda one: (not types or one.type in types) and (not wanted or wanted(one))
        )
        claim = None
        if chosen:
            for item in chosen:
                item.state = "claimed"
                item.attempts += 1
                item.delayed = ("", 0)
                item.who, item.since = who, self._machine.now
                self._note(item, "claimed")
            claim_id = new_id()
            until = self._machine.up + int(lease * 1000)
            box.claims[claim_id] = _Held(holder or self._machine.holder(), until, chosen, who, self._machine.now)
            claim = self._claim(address, claim_id, lease, box.claims[claim_id])
        for item in dead:
            self._tell(address, item)
        return claim

    def _claim(self, address: str, claim_id: str, lease: float, held: _Held) -> Claim:
        return Claim(
            claim_id,
            box_of(address),
            tuple(item.message for item in held.items),
            tuple(item.attempts for item in held.items),
            lease,
            tuple(item.place for item in held.items),
            held.who,
            held.since,
            held.holder if held.holder.pid else self._machine.holder(),
        )

    def _choose(self, box: _Box, limit: int, wanted: Callable[[Message], bool]) -> tuple[list[_Item], list[_Item]]:
        chosen: list[_Item] = []
        dead: list[_Item] = []
        done = {item.message.id for item in box.items if item.state == "acked"}
        behind = [item for item in box.items if not done.issuperset(item.message.after)]
        seen: list[_Item] = []
        delayed = [item for item in box.items if self._is_delayed(item)]
        held = {item.message.sender for item in delayed} if box.ordered else set()
        while len(chosen) < limit:
            waiting = [
                item
                for item in box.items
                if item.state == "queued"
                and item not in chosen
                and item.message.sender not in held
                and item not in delayed
                and item not in seen
                and wanted(item.message)
            ]
            if not waiting:
                break
            item = min(waiting, key=lambda one: (one.lane, one.place.at))
            if box.ordered:  # the earliest of that sender
                item = next(one for one in waiting if one.message.sender == item.message.sender)
            if item in behind:  # its time runs out while it waits; that is found when it is come across
                seen.append(item)
                if self._is_late(item):
                    self._bury(item, "too old")
                    dead.append(item)
                continue
            if chosen and 2 <= item.attempts < MAX_ATTEMPTS:
                break
            reason = self._death(box, item)
            if reason:
                self._bury(item, reason)
                dead.append(item)
                continue
            chosen.append(item)
            if item.attempts >= 2:
                break
        return chosen, dead

    def _bury(self, item: _Item, reason: str) -> None:
        item.state, item.reason, item.since, item.who = "dead", reason, self._machine.now, ""
        item.delayed = ("", 0)
        self._note(item, "dead", reason)

    def _is_delayed(self, item: _Item) -> bool:
        boot, until = item.delayed
        return boot == self._machine.boot and until > self._machine.up

    def _death(self, box: _Box, item: _Item) -> str:
        m = item.message
        if item.attempts >= MAX_ATTEMPTS:
            return "never acknowledged"
        if m.generation and box.generation and m.generation != box.generation:
            return "an earlier run"
        return "too old" if self._is_late(item) else ""

    def _is_late(self, item: _Item) -> bool:
        m = item.message
        boot, up = item.sent
        if boot == self._machine.boot:
            age = self._machine.up - up
        else:
            age = max(self._machine.up, self._machine.now - m.time_ms)
        return bool(m.ttl_ms) and age >= m.ttl_ms and not item.requeued

    def _tell(self, address: str, item: _Item) -> None:
        m = item.message
        if m.sender == POSTMASTER:
            return
        once = f"{box_of(address)} {m.id} {self._machine.now}"
        with contextlib.suppress(InboxNotFound, MessageProblem):
            self.send(
                Message(
                    to=box_of(m.sender),
                    sender=POSTMASTER,
                    type=DEAD_LETTER,
                    id=f"dead.{sha256(once.encode()).hexdigest()[:16]}",
                    subject="not delivered",
                    body=f"Your message {m.id} to {box_of(address)} was not delivered: {item.reason}",
                    in_reply_to=m.id,
                    generation=m.sender_generation,
                )
            )

    def _over(self, held: _Held) -> bool:
        holder = held.holder
        return (
            holder.boot != self._machine.boot
            or self._machine.up >= held.until
            or bool(holder.pid and self._machine.start_of(holder.pid) != holder.start)
        )

    def _take_back(self, box: _Box) -> None:
        for claim_id in [c for c, held in box.claims.items() if self._over(held)]:
            for item in box.claims.pop(claim_id).items:
                item.state = "queued"
                self._note(item, "returned")

    def _mine(self, claim: Claim, ids: tuple[str, ...] | None) -> tuple[_Box, _Held, list[_Item]]:
        box = self._box(claim.address)
        held = box.claims.get(claim.id, _Held(Holder("", 0, 0), 0, [], "", 0))
        items = [item for item in held.items if ids is None or item.message.id in ids]
        if not items or (ids is not None and len(items) != len(set(ids))):
            raise ClaimLost("the claim is over")
        return box, held, items

    def take_over(self, claim: Claim) -> None:
        held = self._box(claim.address).claims.get(claim.id)
        if held is None or held.holder.pid or tuple(item.place for item in held.items) != claim.places:
            raise ClaimLost("the claim is in other hands")

    def _drop(self, box: _Box, claim: Claim, items: list[_Item]) -> None:
        held = box.claims[claim.id]
        held.items = [item for item in held.items if item not in items]
        if not held.items:
            del box.claims[claim.id]

    def ack(self, claim: Claim, ids: tuple[str, ...] | None = None, *, note: str = "") -> None:
        if ids is None and claim.id in self._box(claim.address).finished:
            return
        box, _, items = self._mine(claim, ids)
        for item in items:
            item.state, item.attempts, item.note, item.since = "acked", 0, note, self._machine.now
            self._note(item, "acked", note)
        self._drop(box, claim, items)
        if claim.id not in box.claims:
            box.finished.add(claim.id)

    def nack(self, claim: Claim, ids: tuple[str, ...] | None = None, *, delay: float = 0.0, reason: str = "") -> None:
        box, held, items = self._mine(claim, ids)
        also: list[_Item] = []
        if box.ordered:
            for number, item in enumerate(held.items):
                before = {one.message.sender for one in held.items[:number] if one in items}
                if item not in items and item.message.sender in before:
                    also.append(item)
        for item in items:
            item.state = "queued"
            item.delayed = (self._machine.boot, self._machine.up + int(delay * 1000)) if delay else ("", 0)
            self._note(item, "returned", reason)
        for item in also:
            item.state = "queued"
            item.attempts -= 1
        self._drop(box, claim, items + also)

    def fail(self, claim: Claim, ids: tuple[str, ...] | None = None, *, reason: str) -> None:
        box, _, items = self._mine(claim, ids)
        for item in items:
            item.attempts = 0
            self._bury(item, reason)
        self._drop(box, claim, items)
        for item in items:
            self._tell(claim.address, item)

    def tasks(self, address: str, limit: int = 1000, *, settled: bool = False) -> tuple[Task, ...]:
        box = self._box(address)
        over = [item for held in box.claims.values() if self._over(held) for item in held.items]
        done = {item.message.id for item in box.items if item.state == "acked"}
        lost = {item.message.id for item in box.items if item.state == "dead"}
        for item in box.items:  # who is needed was sent before
            if (item.state == "queued" or item in over) and lost.intersection(item.message.after):
                lost.add(item.message.id)
        found = []
        for item in sorted(box.items, key=lambda one: (one.state == "dead" and not settled, one.lane)):
            waits = item.state == "queued" or item in over
            needs = tuple(one for one in item.message.after if one not in done) if waits else ()
            task = Task(self._stored(address, item), needs, "yes" if lost.intersection(needs) else "")
            if not waits:
                task = task._replace(who=item.who, since_ms=item.since, note=item.note)
            if settled or item.state != "acked":
                found.append(task)
        return tuple(found[:limit])

    def extend(self, claim: Claim, lease: float, holder: Holder | None = None) -> None:
        _, held, _ = self._mine(claim, None)
        held.holder = holder or held.holder
        held.until = self._machine.up + int(lease * 1000)

    def claims(self, address: str) -> tuple[Claim, ...]:
        box = self._box(address)
        return tuple(self._claim(address, c, 0, held) for c, held in box.claims.items() if not self._over(held))

    def depth(self, address: str) -> Depth:
        box = self._box(address)
        claimed = sum(len(held.items) for held in box.claims.values() if not self._over(held))
        dead = sum(item.state == "dead" for item in box.items)
        open_ = sum(item.state in ("queued", "claimed") for item in box.items)
        return Depth(open_ - claimed, claimed, dead, 0)

    def peek(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        items = [item for item in self._box(address).items if item.state in ("queued", "claimed")]
        return tuple(self._stored(address, item) for item in sorted(items, key=lambda one: one.lane)[:limit])

    def history(self, address: str, limit: int = 100) -> tuple[Stored, ...]:
        return tuple(self._stored(address, item) for item in self._box(address).items[-limit:])

    def dead(self, address: str) -> tuple[Stored, ...]:
        return tuple(self._stored(address, item) for item in self._box(address).items if item.state == "dead")

    def _stored(self, address: str, item: _Item) -> Stored:
        held = self._box(address).claims.values()
        over = any(item in one.items for one in held if self._over(one))
        state = "queued" if over and item.state == "claimed" else item.state
        return Stored(item.message, box_of(address), state, item.number, item.attempts, item.reason)

    def requeue(self, address: str, message_id: str) -> None:
        for item in self._box(address).items:
            if item.message.id == message_id and item.state == "dead":
                item.state, item.attempts, item.reason, item.requeued = "queued", 0, "", True
                self._note(item, "requeued")
                return
        raise MessageNotFound("no such dead letter")

    def find(self, message_id: str) -> tuple[Trace, ...]:
        found = []
        for address, box in self._boxes.items():
            for item in box.items:
                if item.message.id == message_id:
                    stored = self._stored(address, item)
                    stored = stored._replace(state=self._noticed(stored.state, item))
                    events = (Event("queued", item.message.time_ms), *item.events)
                    found.append(Trace(stored, events))
        return tuple(found)

    def _noticed(self, state: str, item: _Item) -> str:
        in_hand, seen, nudged = False, False, False
        for event in item.events:
            if event.name in ("claimed", "returned", "dead", "requeued"):
                in_hand, seen, nudged = event.name == "claimed", False, False
            seen |= event.name == "seen"
            nudged |= event.name == "nudged"
        if seen and (state == "claimed" or (state == "queued" and not in_hand)):
            return "seen"
        return "nudged" if nudged and state == "queued" else state

    def record_event(self, address: str, message_id: str, event: str, evidence: str = "") -> None:
        for item in self._box(address).items:
            if item.message.id == message_id:
                self._note(item, event, evidence)
                return
        raise MessageNotFound("no such message")

    def _note(self, item: _Item, name: str, evidence: str = "") -> None:
        item.events.append(Event(name, self._machine.now, evidence))

    def attach(self, source: Path | bytes, name: str = "") -> dict[str, Any]:
        raise NotImplementedError

    def attachment(self, artifact: dict[str, Any]) -> Path:
        raise NotImplementedError


def _is_same(one: Message, other: Message) -> bool:
    """Whether two messages of one id are the same; what swarm fills in may differ, and the words of its notices."""
    if one.sender == other.sender == POSTMASTER:
        return True
    filled_in = ("to", "id", "time_ms", "generation", "sender_generation")
    given = [{key: value for key, value in m._asdict().items() if key not in filled_in} for m in (one, other)]
    return json.dumps(given[0], sort_keys=True) == json.dumps(given[1], sort_keys=True)
