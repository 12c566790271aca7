"""Errors of bridges."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, SwarmError


class BridgeNotFound(SwarmError):
    """No bridge of this name is defined in the user's swarm directory."""

    code = "BRIDGE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm bridge list` shows the bridges"


class BridgeExists(SwarmError):
    """A bridge of this name is defined already."""

    code = "BRIDGE_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "give another name, or edit that file"


class BridgeRuns(SwarmError):
    """A bridge of this name already runs for this repository."""

    code = "BRIDGE_RUNS"
    exit_code = EXIT_EXISTS
    default_hint = "stop it first: `swarm bridge stop NAME`"
