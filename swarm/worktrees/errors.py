"""Errors about worktrees and saved work."""

from __future__ import annotations

import shlex

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_REFUSED, SwarmError


class WorktreeExists(SwarmError):
    """The path of the new worktree is taken; ``details`` holds the path."""

    code = "WORKTREE_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "remove the existing worktree with `swarm cleanup`, or use a different session name"


class WorktreeNotFound(SwarmError):
    """No worktree of this name or path."""

    code = "WORKTREE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "it may already be removed; `swarm worktree list` shows the worktrees"


def no_own_tree(address: str, folder: object) -> WorktreeNotFound:
    """Return the error for an agent that works in a folder which is not its own."""
    return WorktreeNotFound(
        f"{address} has no worktree and no branch of its own: it works in {folder}",
        hint=f"what changed there is told by git: git -C {shlex.quote(str(folder))} status",
    )


class SetupFailed(SwarmError):
    """The setup of a new worktree failed; ``details`` holds the last output."""

    code = "SETUP_FAILED"
    default_hint = "fix the cause, set the setup policy to warn, or skip setup: --no-setup"


class TeardownFailed(SwarmError):
    """A teardown command failed, and its policy is *abort*; swarm removed nothing."""

    code = "TEARDOWN_FAILED"
    default_hint = "fix the cause, set the teardown policy to warn, or skip teardown: --no-teardown"


class SalvageNotFound(SwarmError):
    """No saved work has this name."""

    code = "SALVAGE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm salvage list` shows what can be restored"


class WorkAtRisk(SwarmError):
    """Refused: the removal would lose uncommitted work. ``facts['risks']`` lists it per agent."""

    code = "WORK_AT_RISK"
    exit_code = EXIT_REFUSED
    default_hint = "commit it, or add --force to salvage it first (`swarm restore` brings it back)"


class SalvageFailed(SwarmError):
    """swarm could not save the work, and removed nothing."""

    code = "SALVAGE_FAILED"
    default_hint = "fix the cause, then try again"
