"""Errors of git and of repositories."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_TRY_AGAIN, Environment, SwarmError, UsageProblem


class RefConflict(UsageProblem):
    """A branch is in the way of the folder of branches that swarm needs, or below one of them."""

    code = "REF_CONFLICT"
    default_hint = "rename that branch, or set worktrees.branch_prefix to another word"


class GitFailed(SwarmError):
    """A git command failed; what it printed is in ``details``."""

    code = "GIT_FAILED"
    default_hint = "read what git printed; disk space and permissions are the usual causes"


class BranchExists(GitFailed):
    """The branch name is taken; what git says of that is in ``details``."""

    code = "BRANCH_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "use a different session name, or delete that branch if nobody needs it"


class GitTimeout(GitFailed):
    """git, or a filter or hook that it ran, did not end in time."""

    code = "GIT_TIMEOUT"
    default_hint = "look for a filter that hangs, or raise git.timeout"


class GitBusy(GitFailed):
    """Another git program kept one of the repository's own lock files the whole time."""

    code = "GIT_BUSY"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait for the other git command, then try again; swarm never deletes a lock it did not make"


class NotARepo(Environment):
    """Not inside a git work tree, or a repository without a commit."""

    code = "NOT_A_REPO"
    default_hint = "run `git init` and make a first commit, or point at a repository with -C DIR"


class BareRepository(NotARepo):
    """The repository has no work tree of its own; the code is that of ``NotARepo``."""

    default_hint = "run swarm in a clone that has a work tree"


class GitBroken(Environment):
    """git itself cannot read the repository."""

    code = "GIT_BROKEN"
    default_hint = "look at `git status` and `git fsck`; swarm changed nothing"


class RepositoryOwner(Environment):
    """The repository belongs to another user, and git refuses to use it."""

    code = "REPO_OWNER"
    default_hint = "if you trust it, add it to git's safe.directory list as git says"


class GitMissing(Environment):
    """There is no git program."""

    code = "GIT_MISSING"
    default_hint = "install git 2.38 or newer, for example: sudo apt-get install git"


class GitTooOld(Environment):
    """The git program is too old for this."""

    code = "GIT_TOO_OLD"
    default_hint = "install git 2.38 or newer"
