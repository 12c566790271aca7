"""The boxes below one folder: open them, make them, remove them, look into them."""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING

from swarm.bus.box import Box, Limits
from swarm.bus.log.files import os_errors
from swarm.bus.machine import ThisMachine
from swarm.bus.message import box_of
from swarm.machine import own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import TypeVar

    from swarm.bus.keeping.unused import Saved
    from swarm.bus.log.files import Patience
    from swarm.bus.protocol import (
        Keep,
        Machine,
    )
    from swarm.kit.errors import SwarmError

    T = TypeVar("T")

_MOST_OPEN = 32


class Boxes:
    """The boxes below one folder; for any number of threads and processes.

    Args:
        keep: asked, now and then, how long what is settled is kept; without it that is for ever.
        patience: asked, by whoever has to wait for a lock, for how many seconds.
        saved: asked for the folders of boxes that were moved elsewhere and may come back: their attachments stay.
            Without it none is removed.
    """

    def __init__(
        self,
        root: Path,
        machine: Machine | None = None,
        limits: Limits = Limits(),  # noqa: B008
        keep: Callable[[], Keep] | None = None,
        patience: Patience = None,
        saved: Saved | None = None,
    ) -> None:
        self._saved = saved
        self._root = os.fspath(root)
        own.trust(self._root)
        self._machine = machine or ThisMachine()
        self._limits = limits
        self._keep = keep
        self._patience = patience
        self._tidied: dict[str, float] = {}  # when, of each box
        self._boxes: dict[str, Box] = {}
        self._known: dict[str, Box] = {}  # the same by whatever address was used
        self._guard = RLock()  # of both
        self._pid = os.getpid()

    def close(self) -> None:
        """Let go of all files."""
        self._known.clear()
        for address in list(self._boxes):
            self._boxes.pop(address).close()

    @property
    def root(self) -> str:
        """The folder of all boxes."""
        return self._root

    def declare(self, address: str, *, generation: str = "") -> None:
        """Make a box for this run of its owner; an existing box keeps its messages."""
        box = self._box(box_of(address))
        with box.mutex, os_errors(f"cannot make {box.address}"):
            box.make()
            with box.reader_log as state:
                if state.generation != generation:
                    box.reader_log.add({"op": "open", "generation": generation, "t": self._machine.now_ms()})
            handle = box.reader_log.handle()
        with os_errors(f"cannot make {box.address}"):
            handle.sync()

    def remove(self, address: str) -> None:
        """Forget a box with all that is in it."""
        from pathlib import Path

        from swarm.kit import files

        box = self._box(box_of(address))
        with box.mutex, os_errors(f"cannot remove {box.address}"):
            with box.reader_log:  # also: is it there?
                for log in box.lanes:
                    log.close_for_ever()
            box.close()
            self._known.clear()
            self._boxes.pop(box.address, None)
            aside = f"{os.path.dirname(box.folder)}/.removed-{os.urandom(6).hex()}"
            try:
                own.rename(box.folder, aside)
            except FileNotFoundError:
                raise box.not_there() from None
            files.remove_tree(Path(aside))
            files.sync_folder(Path(aside).parent)

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses of all boxes, also of unreadable ones."""
        from swarm.bus import view

        with os_errors(f"cannot read {self._root}"):
            return tuple(view.addresses(self._root))

    def _box(self, address: str) -> Box:
        if self._pid != os.getpid():  # a fork: its descriptors share their locks with the parent's
            for box in self._boxes.values():
                box.close()
            self._boxes = {}
            self._known.clear()
            self._pid = os.getpid()
        found = self._boxes.get(address)
        if found is not None:
            return found
        with self._guard:
            return self._boxes.get(address) or self._open(address)

    def _open(self, address: str) -> Box:
        if len(self._boxes) >= _MOST_OPEN:
            self._known.clear()
            oldest = self._boxes.pop(next(iter(self._boxes)))
            with oldest.mutex:
                oldest.close()
        found = self._boxes[address] = Box(self._root, address, self._limits, self._patience)
        return found

    def _look(
        self,
        look: Callable[[Box], T],
        address: str = "",
        *,
        lenient: bool = False,
        problems: list[SwarmError] | None = None,
    ) -> Iterator[T]:
        """Yield the results of a read of one box, or of all boxes, one after the other.

        Args:
            lenient: one that cannot be read keeps nobody from what is in the others; its error comes only when
                nothing is in them.
            problems: is told of those that cannot be read; they are passed over.
        """
        from swarm.bus.errors import InboxNotFound
        from swarm.kit.errors import Interrupted, SwarmError

        if address:
            yield self._look_into(box_of(address), look)
            return
        passed = [] if problems is None else problems
        is_found = False
        for one in self.addresses():
            try:
                found = self._look_into(one, look)
            except InboxNotFound:  # it was removed just now
                continue
            except Interrupted:
                raise
            except SwarmError as error:
                if not lenient and problems is None:
                    raise
                passed.append(error)
                continue
            is_found = is_found or bool(found)
            yield found
        if passed and problems is None and not is_found:
            raise passed[0]

    def _look_into(self, address: str, look: Callable[[Box], T]) -> T:
        box = self._box(address)
        with os_errors(f"cannot read {address}"), box.mutex:
            return look(box)
