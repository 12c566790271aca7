"""Clock, boot id and processes, as the bus needs them."""

from __future__ import annotations

import os
import time

# This clock counts on while the machine sleeps, and nobody can set it; else the next best.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class ThisMachine:
    """This machine."""

    def __init__(self) -> None:
        self._boot = ""
        self._own = (0, 0)

    def boot_id(self) -> str:
        """Return a name of the running boot."""
        if not self._boot:
            from swarm.machine import processes

            self._boot = processes.boot_id()
        return self._boot

    def up_ms(self) -> int:
        """Return milliseconds since this boot."""
        return time.clock_gettime_ns(_CLOCK) // 1_000_000

    def now_ms(self) -> int:
        """Return the time of day."""
        return time.time_ns() // 1_000_000

    def start_of(self, pid: int) -> int | None:
        """Return the start time of a living process, or None."""
        from swarm.machine import processes

        if pid != os.getpid():
            return processes.start_of(pid)
        if self._own[0] != pid:
            self._own = (pid, processes.start_of(pid) or 0)
        return self._own[1]
