"""Errors of git and of repositories."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_TRY_AGAIN, EnvironmentProblem, SwarmError, UsageProblem


class RefConflict(UsageProblem):
    """An existing branch blocks the branch names that swarm needs."""

    code = "REF_CONFLICT"
    default_hint = "rename that branch, or set worktrees.branch_prefix to another word"


class GitFailed(SwarmError):
    """A git command failed; ``details`` holds its output."""

    code = "GIT_FAILED"
    default_hint = "read what git printed; disk space and permissions are the usual causes"


class BranchExists(GitFailed):
    """The branch name is taken; ``details`` holds git's message."""

    code = "BRANCH_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "use a different session name, or delete that branch if it is not needed"


class GitTimeout(GitFailed):
    """git, or its filter or hook, exceeded the time limit."""

    code = "GIT_TIMEOUT"
    default_hint = "look for a filter that hangs, or raise git.timeout"


class GitBusy(GitFailed):
    """Another git process held a lock file of the repository for the whole waiting time."""

    code = "GIT_BUSY"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait for the other git command, then try again; swarm never deletes a lock it did not make"


class NotARepo(EnvironmentProblem):
    """Not inside a git work tree, or a repository without a commit."""

    code = "NOT_A_REPO"
    default_hint = "run `git init` and make a first commit, or point at a repository with -C DIR"


class BareRepository(NotARepo):
    """The repository has no work tree of its own; the code is that of ``NotARepo``."""

    default_hint = "run swarm in a clone that has a work tree"


class GitBroken(EnvironmentProblem):
    """git itself cannot read the repository."""

    code = "GIT_BROKEN"
    default_hint = "look at `git status` and `git fsck`; swarm changed nothing"


class RepositoryOwner(EnvironmentProblem):
    """The repository belongs to another user, and git refuses to use it."""

    code = "REPO_OWNER"
    default_hint = "if you trust it, add it to git's safe.directory list as git says"


class GitMissing(EnvironmentProblem):
    """git is not installed."""

    code = "GIT_MISSING"
    default_hint = "install git 2.38 or newer, for example: sudo apt-get install git"


class GitTooOld(EnvironmentProblem):
    """git is too old."""

    code = "GIT_TOO_OLD"
    default_hint = "install git 2.38 or newer"
