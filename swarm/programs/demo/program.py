"""The agent that ships with swarm: needs no network and no account, and really works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from swarm.programs.base import Program
from swarm.programs.demo import turns
from swarm.programs.values import LaunchSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from swarm.programs.turns import Said
    from swarm.programs.values import Launch


class Demo(Program):
    """``python -m swarm.demo_agent``."""

    name = "demo"
    prints = True
    turns = True
    speech = "swarm.programs.demo.speech"
    obeys = frozenset({"heartbeat", "print"})

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return this very Python."""
        return sys.executable

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it; it finds role and task by its environment."""
        argv = (launch.executable, "-P", "-m", "swarm.demo_agent", *launch.args)
        if launch.turn is not None:
            return turns.spec(launch, argv)
        prints = launch.options.print
        pulls = "SWARM_SANDBOX" not in launch.environ  # in a box it does not see its inbox, and is told
        env = {**({"SWARM_DEMO_INBOX": "pull"} if pulls else {}), **({"SWARM_DEMO_PRINT": "1"} if prints else {})}
        return LaunchSpec(argv, env, {}, pulls=pulls, prints=prints)

    def said(self, out: Path) -> Said:
        """Return the last result that it wrote."""
        return turns.said(out)

    def knows(self, launch: Launch) -> bool:
        """Whether its record has a prompt."""
        return turns.knows(launch)

    def heard(self, launch: Launch) -> frozenset[str]:
        """Return the ids in its record."""
        return turns.heard(launch)


PROGRAM = Demo()
