"""Errors about roles and workflows."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, SwarmError, UsageProblem


class RoleNotFound(SwarmError):
    """The role has no instructions."""

    code = "ROLE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "create roles/<role>/CLAUDE.md first, or name an existing role"


class RoleExists(SwarmError):
    """A role of this name already exists in that folder."""

    code = "ROLE_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "edit it, or choose another name"


class OverrideProblem(UsageProblem):
    """A role cannot be adjusted so at its start."""

    code = "OVERRIDE"
    default_hint = "write KEY=VALUE, such as model=opus, with a value as in the role's file"


class PodNotFound(SwarmError):
    """No pod or pod template of this name."""

    code = "POD_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm pod list` shows the pods and their templates"


class PodExists(SwarmError):
    """A pod template of this name already exists in that folder."""

    code = "POD_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "edit it, or choose another name"


class WorkflowNotFound(SwarmError):
    """No workflow of this name."""

    code = "WORKFLOW_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm workflow list` shows the workflows"
