"""Errors about names, sessions, records and swarm directories."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_TRY_AGAIN, EnvironmentProblem, SwarmError, UsageProblem


class InvalidName(UsageProblem):
    """The name of a role, agent or session is not valid."""

    code = "INVALID_NAME"
    default_hint = "use 1 to 40 letters, digits, - and _, starting with a letter or digit"


class ReservedName(UsageProblem):
    """swarm or git reserves this name."""

    code = "NAME_RESERVED"
    default_hint = "choose another name"


class NameCollision(UsageProblem):
    """Two names are equal or differ only in case."""

    code = "NAME_COLLISION"
    default_hint = "swarm compares names without case; choose a name that differs in its letters"


class SessionNotFound(SwarmError):
    """No session of this name."""

    code = "SESSION_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm list` shows the sessions"


class RecordProblem(EnvironmentProblem):
    """swarm cannot read one of its own files, or a newer swarm wrote it."""

    code = "RECORD"
    default_hint = "update swarm if the file is newer; else fix it, or move it away (mv FILE FILE.bad)"


class AgentNotFound(SwarmError):
    """No agent of this name."""

    code = "AGENT_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm status` shows the agents there are"


class SwarmDirProblem(UsageProblem):
    """The named folder is not a swarm directory."""

    code = "SWARM_DIR"
    default_hint = "run `swarm init` in that directory, or unset the variable"


class SwarmDirNotFound(SwarmDirProblem):
    """No swarm directory was found."""

    code = "SWARM_DIR_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "run `swarm init`"


class SwarmDirExists(SwarmDirProblem):
    """The swarm directory already exists."""

    code = "SWARM_DIR_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "nothing to do: it is ready for use"


class Locked(SwarmError):
    """Other processes held the lock of the repository or of an inbox for the whole waiting time."""

    code = "LOCKED"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait for them to end, then try again"


class ServerRuns(SwarmError):
    """Another process serves the agents of this repository."""

    code = "SERVER_RUNS"
    exit_code = EXIT_EXISTS
    default_hint = "it serves all agents; to end it: kill $(cat .swarm/server.pid)"


class ExtraMissing(EnvironmentProblem):
    """A command needs a library that is not installed with swarm."""

    code = "EXTRA_MISSING"
    default_hint = "install it: pip install 'tmux-swarm[mcp]'"
