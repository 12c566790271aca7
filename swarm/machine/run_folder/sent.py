"""How many messages an agent in a box has sent of late: an hour's allowance, which comes back evenly."""

from __future__ import annotations

import os
import time

from swarm.machine import locks, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: In the agent's run folder, which its box does not show.
FILE = "sent.json"
_HOUR = 3600.0
_LONGEST = 4096


def spend(run_dir: str, most: int, count: int = 1) -> float:
    """Take so many messages from what an agent may still send; return 0, or after how many seconds it may send them.

    Args:
        most: messages of an hour.

    Raises:
        OSError: it cannot be written down.
    """
    fd = os.open(os.path.join(run_dir, FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        locks.lock(fd)
        now = time.time()
        left, at = _read(os.pread(fd, _LONGEST, 0), most, now)
        left = min(float(most), left + max(0.0, now - at) * most / _HOUR)
        wanted = min(count, most)  # more than that at once nobody could ever send
        if left < wanted:
            return (wanted - left) * _HOUR / most
        line = records.line({"left": round((left - count) * 1000), "at_ms": round(now * 1000)})
        os.ftruncate(fd, os.pwrite(fd, line, 0))
        return 0.0
    finally:
        os.close(fd)


def _read(data: bytes, most: int, now: float) -> tuple[float, float]:
    """Return what was left and when; all of it where nothing is noted, or what is noted lies in the future."""
    try:
        found: Any = records.loads(data)
        left, at = int(found["left"]) / 1000, int(found["at_ms"]) / 1000
    except (ValueError, KeyError, TypeError):
        return float(most), now
    return (left, at) if at <= now else (min(left, float(most)), now)
