"""Take and finish messages; each decision is made under the readers' lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.errors import ClaimLost, MessageNotFound, MessageProblem
from swarm.bus.message import new_id
from swarm.bus.protocol import Claim, Holder
from swarm.bus.reader.choose import Chooser
from swarm.bus.reader.state import OpenClaim, over

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from swarm.bus.box import Box
    from swarm.bus.message import Message
    from swarm.bus.protocol import Machine, Place
    from swarm.bus.reader.state import State

#: How often a waiting reader looks whether the holder of a claim still lives.
_LOOK_EVERY = 2.0


class Taken(NamedTuple):
    """The result of an attempt to take messages.

    Attributes:
        due: how many seconds later it makes sense to try again.
        owed: senders must be told of dead letters.
        untold: records were damaged, and nobody has been told of it.
        blocked: another claim is in flight; nothing that is sent meanwhile changes that.
    """

    claim: Claim | None
    due: float
    owed: bool
    blocked: bool = False
    untold: bool = False


class Taker(NamedTuple):
    """The reader of a claim: its lease in seconds, its holder process (None: this one), and its name."""

    lease: float
    holder: Holder | None = None
    who: str = ""


class Only(NamedTuple):
    """Which messages are taken of a box without an order: of these types, and those that are wanted."""

    types: tuple[str, ...] = ()
    wanted: Callable[[Message], bool] | None = None


ALL = Only()


def take(box: Box, machine: Machine, limit: int, taker: Taker, only: Only) -> Taken:
    """Claim the next messages of a box, or the next of some."""
    if box.ordered and only != ALL:
        raise MessageProblem(f"{box.address} hands out messages in their order, not by type")
    with box.mutex, box.reader_log as state:
        box.learn_of(box.reader_log.identity)
        _take_back(box, machine, state)
        if box.ordered and state.claims:
            left = min(held.up + held.lease for held in state.claims.values()) - machine.up_ms()
            return Taken(None, _seconds(left), owed=bool(state.owed), blocked=True)
        chooser = Chooser(box.lanes, state, machine, ordered=box.ordered, clear=box.clear, needs=box.needs)
        chooser.only(*only)
        picked = chooser.choose(limit)
        for lane, line in chooser.damaged:
            box.set_aside(lane, line)
        # The finished messages must be on the disk, or another message could stand in their place after a power cut.
        # Below the lock, for once: it happens to few.
        box.secure(chooser.settled())
        # Neither this nor the claim is synced.  Dead letters are found again, if need be; and a power cut
        # ends the holder, too, and with it the claim.
        box.reader_log.add(*chooser.entries)
        claim = None
        if picked:
            held = _held(machine, taker.holder, taker.lease, tuple(one.place for one in picked))
            claim_id = new_id()
            entry = _entry("claim", claim_id, machine, held.places) | {"by": held.holder} | _times(held)
            entry |= {"taker": held.by} if held.by[0] else {}
            box.reader_log.add(entry | {"who": taker.who} if taker.who else entry)
            attempts = tuple(state.attempts[place.id] for place in held.places)
            messages = tuple(one.message for one in picked)
            told = (taker.who, entry["t"], held.taker)
            claim = Claim(claim_id, box.address, messages, attempts, taker.lease, held.places, *told)
        owed, untold = bool(state.owed), bool(state.untold)
    due = chooser.due_ms - machine.up_ms() if chooser.due_ms else _LOOK_EVERY * 1000
    return Taken(claim, _seconds(due), owed=owed, untold=untold)


def expire(box: Box, machine: Machine) -> bool:
    """Give up expired messages; return whether senders need notices of dead letters."""
    with box.mutex, box.reader_log as state:
        box.learn_of(box.reader_log.identity)
        _take_back(box, machine, state)
        chooser = Chooser(box.lanes, state, machine, ordered=box.ordered, clear=box.clear, needs=box.needs)
        chooser.bury_expired()
        box.secure(chooser.settled())
        box.reader_log.add(*chooser.entries)
        return bool(state.owed)


def _seconds(milliseconds: float) -> float:
    return max(0.001, min(milliseconds / 1000, _LOOK_EVERY))


def _entry(name: str, claim: str, machine: Machine, places: tuple[Place, ...]) -> dict[str, Any]:
    return {"op": name, "claim": claim, "t": machine.now_ms(), "m": places}


def _times(held: OpenClaim) -> dict[str, int]:
    return {"up": held.up, "lease": held.lease}


def _held(machine: Machine, holder: Holder | None, lease: float, places: tuple[Place, ...]) -> OpenClaim:
    if holder is None:
        holder = Holder(machine.boot_id(), *_this_process(machine))
    by = (0, 0) if holder.pid else _this_process(machine)
    return OpenClaim(holder, machine.up_ms(), int(lease * 1000), places, by=by)


def _this_process(machine: Machine) -> tuple[int, int]:
    pid = os.getpid()
    return pid, machine.start_of(pid) or 0


def _take_back(box: Box, machine: Machine, state: State) -> None:
    """Let the messages of claims that are over wait again."""
    for claim, held in list(state.claims.items()):
        why = over(held, machine)
        if why:
            box.reader_log.add(_entry("back", claim, machine, held.places) | {"why": why})


# --- settling --------------------------------------------------------------------------------------


def ack(box: Box, machine: Machine, claim: Claim, ids: tuple[str, ...] | None, note: str = "") -> None:
    """Settle messages of a claim."""
    with box.mutex:
        box.secure(claim.places if ids is None else tuple(p for p in claim.places if p.id in ids))
        with box.reader_log as state:
            # After an error a second call only needs to sync.
            if ids is not None or claim.id not in state.finished:
                entry = _entry("ack", claim.id, machine, _mine(state, claim, ids))
                more = {"who": claim.who} if claim.who else {}
                box.reader_log.add(entry | more | {"why": note} if note else entry | more)
            handle = box.reader_log.handle()
    handle.sync()


def nack(box: Box, machine: Machine, claim: Claim, ids: tuple[str, ...] | None, delay: float, reason: str) -> None:
    """Give messages of a claim back. Not synced: a power cut would give them back, too."""
    with box.mutex, box.reader_log as state:
        given = _mine(state, claim, ids)
        also: list[Place] = []
        if box.ordered:
            first: dict[str, int] = {}
            places = state.claims[claim.id].places
            for number, place in enumerate(places):
                if place in given:
                    first.setdefault(place.sender, number)
            also = [p for n, p in enumerate(places) if p not in given and n > first.get(p.sender, n)]
        until = machine.up_ms() + int(delay * 1000) if delay > 0 else 0
        more = {"also": also, "until": until, "boot": machine.boot_id(), "why": reason}
        box.reader_log.add(_entry("nack", claim.id, machine, given) | more)


def fail(box: Box, machine: Machine, claim: Claim, ids: tuple[str, ...] | None, reason: str) -> None:
    """Make messages of a claim dead letters, durably: the reader may have reported it."""
    with box.mutex:
        box.secure(claim.places if ids is None else tuple(p for p in claim.places if p.id in ids))
        with box.reader_log as state:
            box.reader_log.add(_entry("dead", claim.id, machine, _mine(state, claim, ids)) | {"why": reason})
            handle = box.reader_log.handle()
    handle.sync()


def extend(box: Box, machine: Machine, claim: Claim, lease: float, holder: Holder | None = None) -> None:
    """Let the time of a claim begin anew, in the hands of another if one is named."""
    with box.mutex, box.reader_log as state:
        places = _mine(state, claim, None)
        times = {"up": machine.up_ms(), "lease": int(lease * 1000)}
        box.reader_log.add(_entry("extend", claim.id, machine, places) | times | ({"by": holder} if holder else {}))


def take_over(box: Box, machine: Machine, claim: Claim) -> None:
    """Take over a claim from the process that took it; the first caller wins."""
    with box.mutex, box.reader_log as state:
        held = state.claims.get(claim.id)
        if held is None or held.holder.pid or (held.taker, held.places) != (claim.taker, claim.places):
            raise ClaimLost(f"the claim on {claim.address} is in other hands", claim=claim.id)
        box.reader_log.add(_entry("over", claim.id, machine, held.places) | {"taker": _this_process(machine)})


def requeue(box: Box, machine: Machine, message_id: str) -> None:
    """Let a dead letter wait again."""
    with box.mutex, box.reader_log as state:
        grave = state.dead.get(message_id)
        if grave is None:
            raise MessageNotFound(f"no dead letter {message_id[:60]!a} in {box.address}")
        box.reader_log.add(_entry("requeue", "", machine, (grave.place,)))
        handle = box.reader_log.handle()
    handle.sync()


def _mine(state: State, claim: Claim, ids: tuple[str, ...] | None) -> tuple[Place, ...]:
    """Return the places, still held by the claim, of these messages or of all."""
    held = state.claims.get(claim.id)
    places = held.places if held is not None else ()
    if ids is not None:
        places = tuple(place for place in places if place.id in ids)
        if len(places) != len(set(ids)):
            places = ()
    if not places:
        raise ClaimLost(f"the claim on {claim.address} is over", claim=claim.id)
    return places
