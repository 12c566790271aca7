"""Errors of boxes."""

from __future__ import annotations

from swarm.kit.errors import EnvironmentProblem


class SandboxUnavailable(EnvironmentProblem):
    """This machine cannot make a box; nothing was started."""

    code = "SANDBOX_UNAVAILABLE"
    default_hint = "`swarm sandbox check` says what is missing, and how to get it"
