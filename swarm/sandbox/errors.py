"""Errors of boxes."""

from __future__ import annotations

from swarm.kit.errors import EXIT_REFUSED, EnvironmentProblem, SwarmError


class SandboxUnavailable(EnvironmentProblem):
    """This machine cannot make a box; nothing was started."""

    code = "SANDBOX_UNAVAILABLE"
    default_hint = "`swarm sandbox check` says what is missing, and how to get it"


class IntakeRefused(SwarmError):
    """What an agent committed in its box is not fit for the repository; it stays in the box, whole."""

    code = "INTAKE_REFUSED"
    exit_code = EXIT_REFUSED
    default_hint = "look at the agent's commits, and tell the agent what is wrong with them"


class NotInBox(SwarmError):
    """An agent in a box asks for what is not done for agents in boxes."""

    code = "NOT_IN_BOX"
    exit_code = EXIT_REFUSED
    default_hint = "ask the user: swarm send user 'please …'"
