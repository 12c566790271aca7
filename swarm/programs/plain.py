"""Programs that are started as they are: any command of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.programs.base import Program
from swarm.programs.values import LaunchSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.values import Launch


class Plain(Program):
    """A program by its name, without arguments; role and task are in the files its environment names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it."""
        return LaunchSpec((launch.executable,), {}, {})


class Command(Program):
    """Any command: ``--agent-cmd 'program argument …'``."""

    name = "command"
    obeys = frozenset({"telemetry"})  # it is given the variables; it may make something of them

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return its first word."""
        return self._argv[0]

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it with its arguments."""
        return LaunchSpec((launch.executable, *self._argv[1:], *launch.args), {}, {})


class Shell(Program):
    """``$SHELL``, for work by hand in an agent's worktree."""

    name = "shell"
    obeys = frozenset({"heartbeat"})

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the user's shell."""
        return environ.get("SHELL") or "/bin/sh"

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it interactively."""
        return LaunchSpec((launch.executable, *launch.args), {}, {})
