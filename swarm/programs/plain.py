"""Programs that are started as they are: any command of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.programs.base import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.values import Launch, LaunchSpec


class Plain(Program):
    """A program by its name, without arguments; role and task are in the files its environment names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it."""
        return _started(launch.executable)


class Command(Program):
    """Any command: ``--agent-cmd 'program argument …'``. In a turn without a terminal it reads its prompt."""

    name = "command"
    turns = True
    speaks = False
    obeys = frozenset({"telemetry"})  # it is given the variables; it may make something of them

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return its first word."""
        return self._argv[0]

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it with its arguments."""
        from swarm.programs.values import PROMPT

        told = {} if launch.turn is None else {PROMPT: launch.turn.text}
        stdin = PROMPT if told else ""
        return _started(launch.executable, *self._argv[1:], *launch.args, files=told, stdin=stdin)


class Shell(Program):
    """``$SHELL``, for work by hand in an agent's worktree. In a turn without a terminal the prompt is its script."""

    name = "shell"
    turns = True
    speaks = False
    obeys = frozenset({"heartbeat"})

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the user's shell."""
        return environ.get("SHELL") or "/bin/sh"

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it interactively."""
        from swarm.programs.values import PROMPT

        if launch.turn is None:
            return _started(launch.executable, *launch.args)
        script = str(launch.run_dir / PROMPT)
        return _started(launch.executable, *launch.args, script, files={PROMPT: launch.turn.text})


def _started(*argv: str, files: Mapping[str, str] | None = None, stdin: str = "") -> LaunchSpec:
    """Return how to start a program; one that is given its task in a file does it, and ends."""
    from swarm.programs.values import LaunchSpec  # who only looks at agents starts none

    return LaunchSpec(argv, {}, files or {}, prints=bool(files), stdin=stdin)
