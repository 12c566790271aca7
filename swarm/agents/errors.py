"""Errors about running agents."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, SwarmError, UsageProblem


class AgentRunning(SwarmError):
    """The agent is already running."""

    code = "AGENT_RUNNING"
    exit_code = EXIT_EXISTS
    default_hint = "`swarm status` shows it; stop it first with `swarm stop`"


class AgentNotRunning(SwarmError):
    """The agent is not running."""

    code = "AGENT_NOT_RUNNING"
    exit_code = EXIT_NOT_FOUND
    default_hint = "bring it back with `swarm resume`"


class LimitReached(UsageProblem):
    """The request exceeds the limits of a role."""

    code = "LIMIT_REACHED"
    default_hint = "raise the limit in the role's file or the configuration"
