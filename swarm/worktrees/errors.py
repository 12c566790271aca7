"""Errors about worktrees and saved work."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_REFUSED, SwarmError


class WorktreeExists(SwarmError):
    """Something is already at the path of the new worktree; that path is in ``details``."""

    code = "WORKTREE_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "remove the existing worktree with `swarm cleanup`, or use a different session name"


class WorktreeNotFound(SwarmError):
    """There is no such worktree."""

    code = "WORKTREE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "it may already be removed; `swarm worktree list` shows what is there"


class SetupFailed(SwarmError):
    """A fresh worktree could not be made ready; what a command printed last is in ``details``."""

    code = "SETUP_FAILED"
    default_hint = "mend the cause, set the policy of the setup to warn, or leave it out: --no-setup"


class TeardownFailed(SwarmError):
    """A command that runs before a worktree goes failed, and its policy is *abort*: nothing was removed."""

    code = "TEARDOWN_FAILED"
    default_hint = "mend the cause, set the policy of the teardown to warn, or leave it out: --no-teardown"


class SalvageNotFound(SwarmError):
    """Nothing was salvaged under this name."""

    code = "SALVAGE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm salvage list` shows what can be restored"


class WorkAtRisk(SwarmError):
    """Refused: work would be gone from the working tree. ``facts['risks']`` lists it per agent."""

    code = "WORK_AT_RISK"
    exit_code = EXIT_REFUSED
    default_hint = "commit it, or add --force to salvage it first (`swarm restore` brings it back)"


class SalvageFailed(SwarmError):
    """Work could not be saved, so nothing was removed."""

    code = "SALVAGE_FAILED"
    default_hint = "nothing was removed; look at the cause, then try again"
