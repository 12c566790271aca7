"""Errors about agent programs."""

from __future__ import annotations

from swarm.kit.errors import EnvironmentProblem


class ProgramMissing(EnvironmentProblem):
    """The agent program is not installed."""

    code = "AGENT_MISSING"
    default_hint = "install it, or try swarm without one: --agent demo"


class RulesNotEnforced(EnvironmentProblem):
    """The installed agent program cannot enforce the deny rules of a role."""

    code = "RULES_NOT_ENFORCED"
    default_hint = "choose another program with --agent, or remove `permissions.deny` from the role"
