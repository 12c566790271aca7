"""Show the panes of agents in this terminal."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from swarm import UsageProblem
from swarm.cli import given

if TYPE_CHECKING:
    from swarm import Swarm
    from swarm.cli.verb import Run


def attach_to(run: Run, swarm: Swarm) -> None:
    """Become tmux; comes back only when that is not possible."""
    argv = swarm.panes.attach_command()
    run.output.clear_progress()
    os.execv(argv[0], list(argv))  # noqa: S606  # argv, no shell


def need_terminal(swarm: Swarm, instead: str = "") -> None:
    """Refuse, before anything is done, where tmux could show nothing.

    Args:
        instead: what the user can do here; empty: nothing, only in a terminal.
    """
    if not (given.is_typed() and sys.stdout is not None and sys.stdout.isatty()):
        hint = instead or f"in a terminal: {attach_line(swarm)}"
        raise UsageProblem("cannot attach: this is not a terminal", hint=hint)
    if os.environ.get("TMUX") and "switch-client" not in swarm.panes.attach_command():
        hint = instead or f"in a terminal outside of it: {attach_line(swarm)}"
        raise UsageProblem("cannot attach: this terminal is inside another tmux server", hint=hint)


def next_line(swarm: Swarm) -> str:
    """Return the command that shows the panes; inside tmux one that does not nest."""
    return "next: swarm attach" if os.environ.get("TMUX") else f"next: {attach_line(swarm)}"


def attach_line(swarm: Swarm) -> str:
    """Return the command that shows the panes, in a terminal outside of tmux."""
    settings = swarm.config.settings.tmux
    flag = (
        f"-S {shlex.quote(settings.socket)} "
        if "/" in settings.socket
        else f"-L {settings.socket} "
        if settings.socket
        else ""
    )
    return f"tmux {flag}attach -t {settings.session}"
