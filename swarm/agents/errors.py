"""Errors about running agents."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_REFUSED, SwarmError, UsageProblem


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


class NotHeld(SwarmError):
    """The agent has its task already."""

    code = "NOT_HELD"
    exit_code = EXIT_EXISTS
    default_hint = "`swarm why AGENT` tells what it does"


class LimitReached(UsageProblem):
    """The request exceeds the limits of a role."""

    code = "LIMIT_REACHED"
    default_hint = "raise the limit in the role's file or the configuration"


class WaitCycle(SwarmError):
    """The agents of a cycle wait for each other."""

    code = "WAIT_CYCLE"
    exit_code = EXIT_REFUSED
    default_hint = "answer what is asked, or end your turn: messages and events wait for you"
