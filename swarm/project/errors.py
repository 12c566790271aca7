"""Errors about names, sessions, records and swarm directories."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_TRY_AGAIN, Environment, SwarmError, UsageProblem


class InvalidName(UsageProblem):
    """A role, agent or session name is not one."""

    code = "INVALID_NAME"
    default_hint = "use 1 to 40 letters, digits, - and _, starting with a letter or digit"


class ReservedName(UsageProblem):
    """The name means something to swarm or git."""

    code = "NAME_RESERVED"
    default_hint = "choose another name"


class NameCollision(UsageProblem):
    """Two names differ only in case, or the same one was given twice."""

    code = "NAME_COLLISION"
    default_hint = "names are compared without case; choose one that differs in more than that"


class SessionNotFound(SwarmError):
    """No session of this name."""

    code = "SESSION_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm list` shows the sessions there are"


class RecordProblem(Environment):
    """A file of swarm's own cannot be read, or was written by a newer swarm."""

    code = "RECORD"
    default_hint = "update swarm if the file is newer; else mend it, or put it aside (mv FILE FILE.bad)"


class AgentNotFound(SwarmError):
    """No agent of this name."""

    code = "AGENT_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm status` shows the agents there are"


class SwarmDirProblem(UsageProblem):
    """A swarm directory was named that is none."""

    code = "SWARM_DIR"
    default_hint = "run `swarm init` in that directory, or unset the variable"


class SwarmDirNotFound(SwarmDirProblem):
    """No swarm directory anywhere."""

    code = "SWARM_DIR_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "run `swarm init`"


class SwarmDirExists(SwarmDirProblem):
    """The directory is already initialised."""

    code = "SWARM_DIR_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "nothing to do: it is ready for use"


class Locked(SwarmError):
    """Others held the repository's lock, or that of a box of messages, the whole time."""

    code = "LOCKED"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait for it to end, then try again"
