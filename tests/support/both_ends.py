"""How tests are handed out to workers: to one half of them from the beginning of the list, to the rest from its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler.load import LoadScheduling  # type: ignore[import-untyped]  # xdist has no types

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController  # type: ignore[import-untyped]


class BothEnds(LoadScheduling):  # type: ignore[misc]  # the same
    """The scheduler of ``--dist load``, but every second worker begins at the end, where the tests are that wait."""

    def _send_tests(self, node: WorkerController, num: int) -> None:
        if self.nodes.index(node) % 2:
            self.pending[:] = self.pending[-num:] + self.pending[:-num]
        super()._send_tests(node, num)
