"""Errors of tmux."""

from __future__ import annotations

from swarm.kit.errors import Environment


class TmuxMissing(Environment):
    """There is no tmux program."""

    code = "TMUX_MISSING"
    default_hint = "install tmux 3.2 or newer, for example: sudo apt-get install tmux"


class TmuxTooOld(Environment):
    """The tmux program is too old."""

    code = "TMUX_TOO_OLD"
    default_hint = "install tmux 3.2 or newer"


class TmuxSessionTaken(Environment):
    """A tmux session of the name is there that swarm did not make; it is neither used nor ended."""

    code = "TMUX_SESSION_TAKEN"
    default_hint = "rename that session, or set tmux.session to another name (SWARM_TMUX_SESSION=swarm2)"


class TerminalProblem(Environment):
    """tmux could not do what was asked."""

    code = "TMUX_FAILED"
    default_hint = "look at `tmux list-sessions`; `swarm doctor` checks the rest"
