"""How much an agent in a box has on the disk: measured by another process, when so much may have been written.

What was written shows in the free space of the file system, which costs nothing to ask.  Somebody else may write there,
too, or delete; so one also measures now and then.
"""

from __future__ import annotations

import contextlib
import os
import time

from swarm.machine.run_folder import runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm.supervisor.chores import Chore, Chores
    from swarm.supervisor.gate import Launch

#: Seconds after which one measures in any case.
_ANYWAY = 300.0
#: A measurement is followed by so many times the time that it took, and at least by that time.
_REST, _LEAST = 10.0, 2.0
#: Less than this is not worth a look.
_NOTICED = 16 << 20
_ANSWER = 4096


class Disk:
    """The disk of one agent.

    Attributes:
        used: bytes at the last look.
        failed: how many measurements in a row said nothing.
    """

    def __init__(self, launch: Launch, chores: Chores) -> None:
        limit = launch.disk.get("limit")
        self.limit = limit if isinstance(limit, int) else 0
        self.used = 0
        self.failed = 0
        self._at = str(launch.disk.get("at") or "/")
        self._argv = launch.measure_disk
        self._run_dir = launch.run_dir
        self._chores = chores
        self._chore: Chore | None = None
        self._says = -1
        self._began = 0.0
        self._next = 0.0
        self._anyway = 0.0
        self._free = 0

    def look(self) -> None:
        """Take what was measured, and measure again where that may say something else."""
        now = time.monotonic()
        if self._chore is not None:
            if self._chore.status is None:
                return
            self._take(now)
        if now >= self._next and (now >= self._anyway or self._is_written()):
            self._start(now)

    def _is_written(self) -> bool:
        """Whether the file system lost a good part of what the agent may still write."""
        return self._free - _free(self._at) >= max(_NOTICED, (self.limit - self.used) // 4)

    def _start(self, now: float) -> None:
        self._began, self._anyway, self._next = now, now + _ANYWAY, now + _LEAST
        self._free = _free(self._at)
        self._says = os.memfd_create("disk", os.MFD_CLOEXEC)
        self._chore = self._chores.start(self._argv, {b"PATH": os.fsencode(os.defpath)}, stdout=self._says)
        if self._chore is None:
            self._drop()
            self.failed += 1

    def _take(self, now: float) -> None:
        """Read how many KiB each folder takes. What goes while one looks is an error there, and none here."""
        self._next = now + max(_LEAST, _REST * (now - self._began))
        said = os.pread(self._says, _ANSWER, 0)
        status = self._chore.status if self._chore is not None else -1
        self._drop()
        counts = [line.partition(b"\t")[0] for line in said.splitlines()]
        if status not in (0, 1) or not counts or not all(one.isdigit() for one in counts):
            self.failed += 1
            return
        self.failed = 0
        self.used = 1024 * sum(map(int, counts))
        with contextlib.suppress(OSError):  # the disk is full: the limit holds all the same
            at_ms = time.time_ns() // 1_000_000
            runfiles.write(self._run_dir, runfiles.DISK, {"bytes": self.used, "at_ms": at_ms})

    def _drop(self) -> None:
        self._chore = None
        os.close(self._says)
        self._says = -1


def _free(place: str) -> int:
    try:
        found = os.statvfs(place)
    except OSError:
        return 0
    return found.f_bfree * found.f_frsize
