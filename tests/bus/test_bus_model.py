"""Any sequence of acts has the same outcome on the real engine as on the plain reference."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from swarm.bus.box import Limits
from swarm.bus.message import Message, box_of
from swarm.bus.reader.waiting import waiting
from swarm.bus.wire import PRIORITIES
from swarm.kit.errors import SwarmError
from tests.bus.rigs import FileRig, MemoryRig

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.bus.protocol import Claim, Tasks

pytestmark = [pytest.mark.contract, pytest.mark.timeout(600)]  # drawn examples, on a busy machine

BOXES = ("dev@s", "queue.work")
SENDERS = ("a@s", "b@s", "c@s")
LIMITS = Limits(messages=12)
box = st.sampled_from(BOXES)


def boxed(address: str) -> tuple[str, str]:
    """Return the folder of a box, below that of the bus."""
    kind, _, name = box_of(address).partition(".")
    return kind, name


class Both(RuleBasedStateMachine):
    """Do everything twice."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.rigs: tuple[FileRig, MemoryRig] = (FileRig(Path(self.folder.name) / "m"), MemoryRig(Path()))
        self.buses: list[Tasks] = [rig.open(LIMITS) for rig in self.rigs]
        self.claims: list[tuple[Claim, Claim]] = []
        self.sent: list[Message] = []

    @initialize()
    def make(self) -> None:
        for bus in self.buses:
            for address in (*BOXES, *SENDERS[:2]):
                bus.declare(address)

    def teardown(self) -> None:
        self.buses[0].close()  # type: ignore[attr-defined]  # the real one holds files
        self.folder.cleanup()

    def both(self, act: Callable[[Tasks, int], Any]) -> tuple[Any, Any]:
        results: list[Any] = []
        for number, bus in enumerate(self.buses):
            try:
                results.append(act(bus, number))
            except SwarmError as error:
                results.append(error.code)
        return results[0], results[1]

    @rule(
        to=box,
        sender=st.sampled_from(SENDERS),
        priority=st.sampled_from(PRIORITIES),
        ttl=st.sampled_from((0, 0, 0, 5000)),
        generation=st.sampled_from(("", "", "g1", "g2")),
        again=st.integers(0, 60),
        behind=st.lists(st.integers(0, 5), max_size=2),
        same=st.booleans(),
    )
    def send(
        self, to: str, sender: str, priority: str, ttl: int, generation: str, again: int, behind: list[int], same: bool
    ) -> None:
        """Send a new message, or an earlier one again: the very same, or another under its id."""
        key = min(again, len(self.sent))
        known = self.sent[key] if key < len(self.sent) else None
        where = known.to if known is not None else to
        tasks = [one.id for one in self.sent[:key] if one.to == BOXES[1]]
        after = tuple(tasks[-1 - n % len(tasks)] for n in behind) if tasks and where == BOXES[1] else ()
        message = Message(
            where, sender, f"{key}", priority=priority, ttl_ms=ttl, generation=generation,
            id=known.id if known is not None else f"m{key}", time_ms=self.rigs[0].machine.now, after=after,
        )  # fmt: skip
        if known is None:
            self.sent.append(message)
        elif same:
            message = known._replace(time_ms=message.time_ms, generation=generation)
        found, wanted = self.both(lambda bus, _: bus.send(message, durable=False))
        assert found == wanted

    @rule(to=box, limit=st.integers(1, 4), pid=st.sampled_from((100, 200)), lease=st.sampled_from((5.0, 1000.0)))
    def take(self, to: str, limit: int, pid: int, lease: float) -> None:
        found, wanted = self.both(
            lambda bus, n: bus.receive(
                to, limit=limit, lease=lease, holder=self.rigs[n].machine.holder(pid), who=f"w{pid}"
            )
        )
        assert (found is None) == (wanted is None), (found, wanted)
        if found is not None:
            assert (found.messages, found.attempts) == (wanted.messages, wanted.attempts)
            self.claims.append((found, wanted))

    @rule(which=st.integers(0, 5), part=st.booleans())
    def ack(self, which: int, part: bool) -> None:
        self._settle(which, part, lambda bus, claim, ids: bus.ack(claim, ids, note="it is done"))

    @rule(which=st.integers(0, 5), part=st.booleans())
    def fail(self, which: int, part: bool) -> None:
        self._settle(which, part, lambda bus, claim, ids: bus.fail(claim, ids, reason="cannot be done"))

    @rule(which=st.integers(0, 5), part=st.booleans(), delay=st.sampled_from((0.0, 3.0)))
    def nack(self, which: int, part: bool, delay: float) -> None:
        self._settle(which, part, lambda bus, claim, ids: bus.nack(claim, ids, delay=delay))

    @rule(which=st.integers(0, 5))
    def extend(self, which: int) -> None:
        self._settle(which, False, lambda bus, claim, ids: bus.extend(claim, 20.0))

    def _settle(self, which: int, part: bool, act: Callable[[Tasks, Claim, Any], None]) -> None:
        if self.claims:
            pair = self.claims[-1 - which % len(self.claims)]
            ids = tuple(m.id for m in pair[0].messages[len(pair[0].messages) // 2 :]) if part else None
            found, wanted = self.both(lambda bus, n: act(bus, pair[n], ids))
            assert found == wanted

    @rule(to=box, which=st.integers(0, 3))
    def requeue(self, to: str, which: int) -> None:
        dead = sorted(one.message.id for one in self.buses[1].dead(to))
        if dead:
            self.both(lambda bus, _: bus.requeue(to, dead[which % len(dead)]))

    @rule(seconds=st.sampled_from((1, 6)))
    def wait(self, seconds: float) -> None:
        for rig in self.rigs:
            rig.machine.pass_time(seconds)

    @rule()
    def reboot(self) -> None:
        for rig in self.rigs:
            rig.machine.reboot()

    @rule()
    def holder_dies(self) -> None:
        for rig in self.rigs:
            rig.machine.alive[200] += 1

    @rule(to=box, generation=st.sampled_from(("g1", "g2")))
    def new_run(self, to: str, generation: str) -> None:
        self.both(lambda bus, _: bus.declare(to, generation=generation))

    @rule()
    def next_process(self) -> None:
        self.buses[0].close()  # type: ignore[attr-defined]  # the real one holds files
        self.buses[0] = self.rigs[0].open(LIMITS)

    @invariant()
    def same(self) -> None:
        for address in (*BOXES, *SENDERS[:2]):
            found, wanted = self.both(lambda bus, _: self._all(bus, address))  # noqa: B023  # called at once
            assert found == wanted
            folder = self.rigs[0].root.joinpath(*boxed(address))
            assert waiting(str(folder), self.rigs[0].machine) == found[0][0]  # as supervisors count (SESS-14)

    def _all(self, bus: Tasks, address: str) -> Any:
        waiting = [(one.message.id, one.state, one.number, one.attempts) for one in bus.peek(address)]
        dead = sorted((one.message.id, one.state) for one in bus.dead(address))
        tasks = bus.tasks(address, settled=True) if address.startswith("queue") else ()
        shown = sorted((t.stored.message.id, t.stored.state, t.needs, bool(t.blocked), *t[3:]) for t in tasks)
        return bus.depth(address)[:3], waiting, dead, len(bus.claims(address)), shown


TestBoth = Both.TestCase
TestBoth.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
