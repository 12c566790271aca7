"""Errors about the caller."""

from __future__ import annotations

from swarm.kit.errors import EXIT_NOT_FOUND, EXIT_REFUSED, SwarmError


class NotForAgents(SwarmError):
    """The command is reserved for people, or the agent lacks the right to it."""

    code = "NOT_FOR_AGENTS"
    exit_code = EXIT_REFUSED
    default_hint = "ask the user: swarm send user 'please …'"


class NotAPerson(SwarmError):
    """The command is reserved for a person or a program with a grant, and the caller is neither."""

    code = "NOT_A_PERSON"
    exit_code = EXIT_REFUSED
    default_hint = "type it in a terminal of your own; for a program: swarm approvals grant NAME"


class IdentityRefused(SwarmError):
    """A process asked to act as an agent that it does not belong to."""

    code = "IDENTITY_REFUSED"
    exit_code = EXIT_REFUSED
    default_hint = "an agent's program starts its own door: swarm mcp --agent NAME"


class NotInTree(SwarmError):
    """The agent is not below the caller, nor its parent."""

    code = "NOT_IN_TREE"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm tree` lists the agents that you can reach"
