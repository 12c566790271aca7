"""The agent that ships with swarm: needs no network and no account, and really works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from swarm.domain.panes import LaunchSpec
from swarm.drivers.agents.base import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.domain.panes import Launch


class Demo(Program):
    """``python -m swarm.demo_agent``."""

    name = "demo"

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return this very Python."""
        return sys.executable

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it; it finds role and task by its environment."""
        argv = (launch.executable, "-P", "-m", "swarm.demo_agent")
        return LaunchSpec(argv, {"SWARM_DEMO_INBOX": "pull"}, {}, pulls=True)
