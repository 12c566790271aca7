"""Errors about sessions."""

from __future__ import annotations

from swarm.git.errors import GitFailed
from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_TRY_AGAIN, EXIT_USAGE, SwarmError


class CleanupFailed(SwarmError):
    """Some worktrees or branches could not be removed; ``facts['failed']`` lists them."""

    code = "CLEANUP_FAILED"
    default_hint = "look at the cause of each, then run the same command again, maybe with --force"


class BaseNotFound(GitFailed):
    """The starting point is no commit of this repository."""

    code = "BASE_NOT_FOUND"
    exit_code = EXIT_USAGE
    default_hint = "name a branch, tag or commit that exists; `git branch -a` lists the branches"


class SessionExists(SwarmError):
    """A session of this name is already there."""

    code = "SESSION_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "choose another session name, or remove the old one with `swarm cleanup`"


class RestoreConflict(SwarmError):
    """What is there now is in the way of what should be brought back."""

    code = "RESTORE_CONFLICT"
    exit_code = EXIT_EXISTS
    default_hint = "clean up or rename what is in the way, then restore again"


class NotReached(SwarmError):
    """What was waited for can no longer happen."""

    code = "NOT_REACHED"
    default_hint = "`swarm why AGENT` tells what happened"


class WaitOver(SwarmError):
    """The time to wait was over before it happened."""

    code = "TIMEOUT"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait again, or for longer with --timeout"


class NoRecord(SwarmError):
    """An agent's program writes nothing down of its conversation that swarm can read."""

    code = "NO_RECORD"
    exit_code = EXIT_NOT_FOUND
    default_hint = "what its pane shows: `swarm peek AGENT`"
