"""Any sequence of acts has the same outcome when what is settled is removed in between."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule

from swarm.bus.filebus import FileBus
from swarm.bus.protocol import Keep
from tests.bus.rigs import FileRig, MemoryBus
from tests.bus.test_bus_model import BOXES, LIMITS, Both, box

if TYPE_CHECKING:
    from swarm.bus.box import Box, Limits
    from swarm.bus.protocol import Tasks

pytestmark = [pytest.mark.contract, pytest.mark.timeout(600)]  # drawn examples, on a busy machine

#: By the clock of the tests every file was written in the future: nothing is too young.
AT_ONCE = Keep(-100 * 365 * 86_400_000)


class SmallParts(FileBus):
    """Each part of a log holds a few messages."""

    def _box(self, address: str) -> Box:
        found = super()._box(address)
        for log in (*found.lanes, found.reader_log.log):
            log._roll_at = 700
        return found


class SmallRig(FileRig):
    def open(self, limits: Limits = LIMITS) -> Tasks:
        return SmallParts(self.root, self.machine, limits)


class Pruned(Both):
    """Do everything twice, and let the real engine forget what it may."""

    def __init__(self) -> None:
        super().__init__()
        self.rigs = (SmallRig(Path(self.folder.name) / "small"), self.rigs[1])
        self.buses[0] = self.rigs[0].open(LIMITS)
        self.gone: set[str] = set()

    @rule(to=box, first=box)
    def prune(self, to: str, first: str) -> None:
        real, reference = self.buses
        assert isinstance(real, FileBus)
        assert isinstance(reference, MemoryBus)
        for address in {to, first} & set(BOXES):
            before = {one.message.id for one in real.history(address, 1000)}
            real.prune(address, AT_ONCE)
            gone = before - {one.message.id for one in real.history(address, 1000)}
            for item in reference._box(address).items:
                if item.message.id in gone:
                    assert item.state in ("acked", "dead")
                    item.state = "acked"
            self.gone |= gone
        # Who sends under the id of one that is gone sends a new message; the reference knows that by another name.
        self.sent = [one._replace(id=f"{one.id}'") if one.id in self.gone else one for one in self.sent]

    def _all(self, bus: Tasks, address: str) -> Any:
        *seen, shown = super()._all(bus, address)
        return *seen, [one for one in shown if one[0] not in self.gone]


TestPruned = Pruned.TestCase
TestPruned.settings = settings(
    max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
