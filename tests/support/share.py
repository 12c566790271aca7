"""Which crash points a run tries: all with ``SWARM_CRASH=full``, else a share that is another one with each commit."""

from __future__ import annotations

import os
import subprocess

from tests.support.procs import PROJECT


def _turn() -> int:
    if given := os.environ.get("SWARM_CRASH_TURN"):
        return int(given)
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=False)
    return int(said.stdout[:6] or "0", 16)


FULL = os.environ.get("SWARM_CRASH") == "full"
#: Where in the points a commit's share begins; ``SWARM_CRASH_TURN`` repeats the share of another commit.
TURN = _turn()
