"""Errors about sessions."""

from __future__ import annotations

from swarm.git.errors import GitFailed
from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_TRY_AGAIN, EXIT_USAGE, SwarmError


class CleanupFailed(SwarmError):
    """swarm could not remove some worktrees or branches; ``facts['failed']`` lists them."""

    code = "CLEANUP_FAILED"
    default_hint = "look at the cause of each, then run the same command again, maybe with --force"


class BaseNotFound(GitFailed):
    """The starting point is not a commit of this repository."""

    code = "BASE_NOT_FOUND"
    exit_code = EXIT_USAGE
    default_hint = "name a branch, tag or commit that exists; `git branch -a` lists the branches"


class SessionExists(SwarmError):
    """A session of this name already exists."""

    code = "SESSION_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "choose another session name, or remove the old one with `swarm cleanup`"


class AgentExists(SwarmError):
    """The session already has an agent of this name."""

    code = "AGENT_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "choose another name, or bring the agent back with `swarm resume AGENT@SESSION`"


class RestoreConflict(SwarmError):
    """An existing file, folder or branch blocks the restore."""

    code = "RESTORE_CONFLICT"
    exit_code = EXIT_EXISTS
    default_hint = "remove or rename the named thing, then restore again"


class NotReached(SwarmError):
    """The awaited state can no longer be reached."""

    code = "NOT_REACHED"
    default_hint = "`swarm why AGENT` shows the cause"


class WaitOver(SwarmError):
    """The waiting time ended first."""

    code = "TIMEOUT"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait again, or for longer with --timeout"


class NoRecord(SwarmError):
    """The agent's program keeps no record that swarm can read."""

    code = "NO_RECORD"
    exit_code = EXIT_NOT_FOUND
    default_hint = "read its pane: `swarm peek AGENT`"
