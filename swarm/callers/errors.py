"""Errors about the caller."""

from __future__ import annotations

from swarm.kit.errors import EXIT_REFUSED, SwarmError


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
