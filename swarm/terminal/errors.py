"""Errors of tmux."""

from __future__ import annotations

from swarm.kit.errors import EnvironmentProblem


class TmuxMissing(EnvironmentProblem):
    """tmux is not installed."""

    code = "TMUX_MISSING"
    default_hint = "install tmux 3.2 or newer, for example: sudo apt-get install tmux"


class TmuxTooOld(EnvironmentProblem):
    """tmux is too old."""

    code = "TMUX_TOO_OLD"
    default_hint = "install tmux 3.2 or newer"


class TmuxSessionTaken(EnvironmentProblem):
    """A tmux session of this name exists, and swarm did not make it."""

    code = "TMUX_SESSION_TAKEN"
    default_hint = "rename that session, or set tmux.session to another name (SWARM_TMUX_SESSION=swarm2)"


class TerminalProblem(EnvironmentProblem):
    """A tmux command failed."""

    code = "TMUX_FAILED"
    default_hint = "look at `tmux list-sessions`; `swarm doctor` checks the rest"
