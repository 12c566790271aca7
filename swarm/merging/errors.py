"""Errors of merging."""

from __future__ import annotations

from swarm.kit.errors import EXIT_NOT_FOUND, EXIT_REFUSED, EXIT_TRY_AGAIN, Environment, SwarmError
from swarm.worktrees.errors import WorkAtRisk


class NotCommitted(WorkAtRisk):
    """Refused: agents hold work that a merge would leave out. ``facts['agents']`` lists it."""

    code = "NOT_COMMITTED"
    default_hint = "let them commit it, or add --committed-only to merge without it"


class MergeConflict(SwarmError):
    """Refused: the work does not go together. ``facts['conflicts']`` lists the files of each agent."""

    code = "MERGE_CONFLICT"
    exit_code = EXIT_REFUSED
    default_hint = "let one of them take the other's branch in and resolve it; `swarm conflicts` shows who meets whom"


class MergeBlocked(SwarmError):
    """Refused: local work in the checkout of the target branch stands in the way."""

    code = "MERGE_BLOCKED"
    exit_code = EXIT_REFUSED
    default_hint = "commit or stash it there, then merge again"


class TargetNotFound(SwarmError):
    """There is no such branch to merge into."""

    code = "TARGET_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "name a branch that exists with --into; `git branch` lists them"


class TargetMoved(SwarmError):
    """The target branch got another commit while the merge was made; everything was taken back."""

    code = "TARGET_MOVED"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "merge again"


class IdentityMissing(Environment):
    """git does not know whose commits it is to make."""

    code = "IDENTITY_MISSING"
    default_hint = "git config --global user.name 'Your Name' && git config --global user.email you@example.com"
