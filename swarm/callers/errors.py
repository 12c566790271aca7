"""Errors about the caller."""

from __future__ import annotations

from swarm.kit.errors import EXIT_REFUSED, SwarmError


class NotForAgents(SwarmError):
    """An agent tried what is for people, or what it has no right to do to others."""

    code = "NOT_FOR_AGENTS"
    exit_code = EXIT_REFUSED
    default_hint = "ask the user: swarm send user 'please …'"


class NotAPerson(SwarmError):
    """Nothing shows that a person, or a program with a grant, asks for what only these may do."""

    code = "NOT_A_PERSON"
    exit_code = EXIT_REFUSED
    default_hint = "type it in a terminal of your own; for a program: swarm approvals grant NAME"
