"""Errors about running agents."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, SwarmError, UsageProblem


class AgentRunning(SwarmError):
    """The agent runs already."""

    code = "AGENT_RUNNING"
    exit_code = EXIT_EXISTS
    default_hint = "`swarm status` shows it; stop it first with `swarm stop`"


class AgentNotRunning(SwarmError):
    """The agent does not run."""

    code = "AGENT_NOT_RUNNING"
    exit_code = EXIT_NOT_FOUND
    default_hint = "bring it back with `swarm resume`"


class LimitReached(UsageProblem):
    """More was asked for than the limits of a role allow."""

    code = "LIMIT_REACHED"
    default_hint = "raise the limit in the role's file or the configuration"
