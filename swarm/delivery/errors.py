"""Errors of typing into panes."""

from __future__ import annotations

from swarm.kit.errors import EXIT_TRY_AGAIN, SwarmError


class PaneBusy(SwarmError):
    """The pane does not accept keys now."""

    code = "PANE_BUSY"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "look at it with `swarm attach`, and try again"
