"""Errors of merging."""

from __future__ import annotations

from swarm.git.content.walk import MOST
from swarm.kit.errors import EXIT_NOT_FOUND, EXIT_REFUSED, EXIT_TRY_AGAIN, EnvironmentProblem, SwarmError
from swarm.worktrees.errors import WorkAtRisk


class NotCommitted(WorkAtRisk):
    """Refused: agents have uncommitted work, which the merge would leave out. ``facts['agents']`` lists it."""

    code = "NOT_COMMITTED"
    default_hint = "let them commit it, or add --committed-only to merge without it"


class TooMuchToRead(SwarmError):
    """What is not committed in a worktree is more than swarm reads of it."""

    code = "TOO_MUCH_TO_READ"
    exit_code = EXIT_REFUSED
    default_hint = "commit it, have git ignore it, or delete it; in a box: swarm sandbox exec AGENT -- rm FILE"


def too_much_to_read(tree: object, largest: str, total: int) -> TooMuchToRead:
    """Return the error for a worktree in which so many bytes are not committed."""
    return TooMuchToRead(
        f"cannot read what is not committed in {tree}: it has {total / 2**30:.0f} GiB, and swarm reads "
        f"{MOST >> 30} GiB; its largest file is {largest}"
    )


class MergeConflict(SwarmError):
    """Refused: the agents' work conflicts. ``facts['conflicts']`` lists the files of each agent."""

    code = "MERGE_CONFLICT"
    exit_code = EXIT_REFUSED
    default_hint = (
        "merge the other branch in the worktree of one agent and resolve the conflict there; "
        "`swarm conflicts` shows the pairs"
    )


class MergeBlocked(SwarmError):
    """Refused: the checkout of the target branch has local changes in the same files."""

    code = "MERGE_BLOCKED"
    exit_code = EXIT_REFUSED
    default_hint = "commit or stash it there, then merge again"


class TargetNotFound(SwarmError):
    """The target branch of the merge does not exist."""

    code = "TARGET_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "name a branch that exists with --into; `git branch` lists them"


class TargetMoved(SwarmError):
    """The target branch got another commit during the merge; swarm undid the merge."""

    code = "TARGET_MOVED"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "merge again"


class IdentityMissing(EnvironmentProblem):
    """git has no name and email for new commits."""

    code = "IDENTITY_MISSING"
    default_hint = "git config --global user.name 'Your Name' && git config --global user.email you@example.com"
