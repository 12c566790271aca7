"""Errors of components and their servers."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_REFUSED, EnvironmentProblem, SwarmError


class ComponentRuns(SwarmError):
    """A server of this name already runs for this swarm directory."""

    code = "COMPONENT_RUNS"
    exit_code = EXIT_EXISTS
    default_hint = "`swarm discover` shows it; `swarm shutdown` ends it"


class ComponentNotFound(SwarmError):
    """No component of this swarm directory is meant."""

    code = "COMPONENT_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm services` lists the components"


class LooseMode(EnvironmentProblem):
    """A file with a secret can be read by others."""

    code = "LOOSE_MODE"
    default_hint = "make it readable for you alone: chmod 600 FILE"


class ServiceProblem(EnvironmentProblem):
    """A server does not answer, or not as a component does."""

    code = "SERVICE"
    default_hint = "`swarm discover` shows which components answer"


class CodeRefused(SwarmError):
    """A browser shows a code that does not count."""

    code = "CODE_REFUSED"
    exit_code = EXIT_REFUSED
    default_hint = "a code counts once, for a minute: make another one"


class BrowserNotFound(SwarmError):
    """No browser of this id is signed in."""

    code = "BROWSER_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`GET /browsers` of the server lists them"
