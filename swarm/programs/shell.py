"""The user's own shell, for work by hand in an agent's worktree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.programs.base import Program
from swarm.programs.values import LaunchSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.values import Launch


class Shell(Program):
    """``$SHELL``."""

    name = "shell"

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the user's shell."""
        return environ.get("SHELL") or "/bin/sh"

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it interactively."""
        return LaunchSpec((launch.executable,), {}, {})
