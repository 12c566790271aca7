"""Read waiting messages from a box that was moved out of the bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.bus.box import Box, Limits
from swarm.bus.reader.choose import Chooser

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.message import Message

_ALL = 1 << 30


class _NoTime:
    """A machine on which no time passes, so that saved messages never expire."""

    def boot_id(self) -> str:
        return ""

    def up_ms(self) -> int:
        return 0

    def now_ms(self) -> int:
        return 0

    def start_of(self, pid: int) -> int | None:  # noqa: ARG002  # a machine is asked this way
        return None


def waiting_in(folder: Path, *, ordered: bool) -> tuple[Message, ...]:
    """Return the unfinished messages of a box in delivery order; changes nothing.

    What somebody had in hand or gave back with a delay waits as well.
    """
    box = Box(str(folder.parent.parent), f"{folder.parent.name}.{folder.name}", Limits())
    try:
        state = box.reader_log.look()
        state.claims, state.attempts, state.delayed, state.generation = {}, {}, {}, ""
        chooser = Chooser(box.lanes, state, _NoTime(), ordered=ordered, clear={}, needs={})
        return tuple(one.message for one in chooser.choose(_ALL))
    finally:
        box.close()
