"""Errors about permission requests and grants."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, SwarmError


class ApprovalNotFound(SwarmError):
    """No request of an agent has this id."""

    code = "APPROVAL_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "list the open ones with `swarm approvals`"


class AlreadyAnswered(SwarmError):
    """Another answer came first."""

    code = "ALREADY_ANSWERED"
    exit_code = EXIT_EXISTS
    default_hint = "`swarm approvals --all` shows the answer and its author"


class GrantExists(SwarmError):
    """A grant of this name already exists."""

    code = "GRANT_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "choose another name, or revoke it first: swarm approvals grant NAME --revoke"


class GrantNotFound(SwarmError):
    """No grant of this name."""

    code = "GRANT_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm approvals grants` lists them"
