"""An agent's program as a process: end it, and run a command in its environment."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from typing import TYPE_CHECKING

from swarm.machine.run_folder import runfiles
from swarm.programs import registry
from swarm.programs.facts import facts as facts  # noqa: PLC0414  # offered here
from swarm.programs.reading import notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run_aside(argv: Sequence[str], environ: Mapping[str, str], cwd: str | None = None) -> None:
    """Run a command in the background, with nothing to read or print; a failure to start it is no error."""
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError, ValueError):
        started = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(environ),
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )
        threading.Thread(target=started.wait, daemon=True).start()  # or it would stay in the process table


def end_agents(agents: Sequence[tuple[Path, str]], grace: float) -> list[tuple[str, ...]]:
    """End programs, by run folder and stamp, and everything they started; return the survivors of each."""
    from swarm.kit import kill

    return [tuple(map(str, left)) for left in kill.end_agents(agents, grace)]


def left_behind(run_dir: Path, worktree: Path) -> list[str]:
    """Return in words what a service of an agent's program has left behind of its conversation."""
    source = runfiles.read(str(run_dir), runfiles.RECORD) or {}
    told = {"program": str(source.get("program", "")), **notes.read(run_dir)}
    return registry.noted(told).left_behind(run_dir, worktree)


def idle_since(run_dir: Path) -> int:
    """Return since when a program is idle by its own words, in milliseconds since 1970; 0: not, or it does not tell."""
    own = facts(run_dir).own
    return own.since_ms if own is not None and own.state == "idle" else 0
