"""The worktree functions of the user's design, for a repository given by path.

Each takes ``repo`` (any folder of the repository; default: the current directory) and does what the
method of the same name on ``Swarm`` does.  Whatever they raise is a ``WorktreeError``.

Example:
    >>> from swarm.worktrees import create_worktrees, full_cleanup
    >>> create_worktrees(["researcher", "developer"], "feature-x", repo="/path/to/project")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.api.design import DEFAULT_MAX_AGE_MS
from swarm.git.errors import GitBroken, NotARepo
from swarm.kit.errors import WorktreeError
from swarm.project import names
from swarm.project.names import BRANCH_PREFIX, ROLES_DIR, VALID_ROLES, WORKTREE_BASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.api.design import Design
    from swarm.project.model import WorktreeEntry
    from swarm.sessions.values import WorktreeInfo

    Repo = str | os.PathLike[str] | None

__all__ = [
    "BRANCH_PREFIX",
    "DEFAULT_MAX_AGE_MS",
    "ROLES_DIR",
    "VALID_ROLES",
    "WORKTREE_BASE",
    "WorktreeError",
    "branch_exists",
    "cleanup_orphaned_worktrees",
    "cleanup_swarm_branches",
    "copy_role_config",
    "create_worktree",
    "create_worktrees",
    "full_cleanup",
    "generate_branch_name",
    "get_current_branch",
    "get_git_root",
    "get_role_config_path",
    "get_worktree_head",
    "get_worktree_info",
    "get_worktree_path",
    "has_commits",
    "has_uncommitted_changes",
    "is_git_repository",
    "list_all_worktrees",
    "list_worktrees",
    "lock_worktree",
    "new_session_id",
    "prune_worktrees",
    "remove_all_worktrees",
    "remove_worktree",
    "role_config_exists",
    "unlock_worktree",
    "update_role_config",
    "validate_repository",
    "worktree_exists",
]


def _open(repo: Repo) -> Design:
    from swarm.api.design import Design

    return Design.open(repo, flags={"cleanup.background": False})  # a script goes on when all is done


def is_git_repository(*, repo: Repo = None) -> bool:
    """Whether *repo* is inside a git work tree; a bare repository or the inside of ``.git`` is not."""
    return get_git_root(repo=repo) is not None


def get_git_root(*, repo: Repo = None) -> Path | None:
    """Return the main checkout, or None outside a repository."""
    from swarm.git.discover import discover

    try:
        return discover(Path(os.path.abspath(repo if repo is not None else ".")), os.environ).root
    except NotARepo:
        return None


def has_commits(*, repo: Repo = None) -> bool:
    """Whether the repository has a commit."""
    return is_git_repository(repo=repo) and _open(repo).has_commits()


def get_current_branch(*, repo: Repo = None) -> str | None:
    """Return the current branch, ``HEAD`` when detached, or None."""
    return _open(repo).get_current_branch() if is_git_repository(repo=repo) else None


def branch_exists(branch: str, *, repo: Repo = None) -> bool:
    """Whether a branch of this name exists."""
    return _open(repo).branch_exists(branch)


def validate_repository(*, repo: Repo = None) -> None:
    """Make sure that worktrees can be made.

    Raises:
        NotARepo: not in a repository, or no commit yet.
    """
    _open(repo).validate_repository()


def generate_branch_name(role: str, session_id: str | None = None, *, repo: Repo = None) -> str:
    """Return ``swarm/<role>-<session>``, with the first part that the repository has set; it need not be in one."""
    name, session = names.check_name("role", role), names.check_session(session_id)
    if repo is None and not is_git_repository():
        return names.branch_name(name, session)
    return _open(repo).generate_branch_name(name, session)


def new_session_id(*, repo: Repo = None) -> str:
    """Return a fresh session name: the milliseconds since 1970, or the next number if that is taken.

    No process gets the same twice, and none gets the name of a session that its repository has.
    """
    if repo is None and not is_git_repository():
        return names.new_session_id()
    return _open(repo).new_session_id()


def get_worktree_path(role: str, session_id: str | None = None, *, repo: Repo = None) -> Path:
    """Return where the worktree of a role is, or would be."""
    return _open(repo).get_worktree_path(role, session_id)


def create_worktree(
    role: str,
    session_id: str | None = None,
    base_branch: str | None = None,
    copy_role_config: bool = True,
    *,
    reuse: bool = False,
    repo: Repo = None,
) -> Path:
    """Make the worktree of one role and return its path."""
    names.check_session(session_id)
    return _open(repo).create_worktree(role, session_id, base_branch, copy_role_config=copy_role_config, reuse=reuse)


def create_worktrees(
    roles: Sequence[str],
    session_id: str | None = None,
    base_branch: str | None = None,
    copy_role_config: bool = True,
    *,
    repo: Repo = None,
) -> dict[str, Path]:
    """Make the worktrees of several roles, all or none; return agent → path in the order given."""
    names.check_session(session_id)
    return _open(repo).create_worktrees(roles, session_id, base_branch, copy_role_config=copy_role_config)


def get_role_config_path(role: str, *, repo: Repo = None) -> Path:
    """Return the file with a role's instructions."""
    return _open(repo).get_role_config_path(role)


def role_config_exists(role: str, *, repo: Repo = None) -> bool:
    """Whether a role has instructions."""
    return _open(repo).role_config_exists(role)


def copy_role_config(role: str, worktree_path: str | Path, *, repo: Repo = None) -> Path:
    """Put a role's instructions into a worktree's root."""
    return _open(repo if repo is not None else worktree_path).copy_role_config(role, worktree_path)


def update_role_config(role: str, session_id: str | None = None, *, force: bool = False, repo: Repo = None) -> None:
    """Put a role's present text into its existing worktree."""
    _open(repo).update_role_config(role, session_id, force=force)


def remove_worktree(
    role: str,
    force: bool = False,
    delete_branch: bool = True,
    *,
    session_id: str | None = None,
    repo: Repo = None,
) -> None:
    """Remove a role's worktree and its branch; a missing worktree counts as success."""
    _open(repo).remove_worktree(role, force, delete_branch, session_id)


def remove_all_worktrees(force: bool = False, delete_branches: bool = True, *, repo: Repo = None) -> int:
    """Remove every worktree of swarm's and return how many."""
    return _open(repo).remove_all_worktrees(force, delete_branches)


def prune_worktrees(*, repo: Repo = None) -> None:
    """Forget worktrees whose folder is gone."""
    _open(repo).prune_worktrees()


def list_all_worktrees(*, repo: Repo = None) -> tuple[WorktreeEntry, ...]:
    """Return git's worktree list, the main checkout included."""
    return _open(repo).list_all_worktrees()


def list_worktrees(*, strict: bool = False, repo: Repo = None) -> list[WorktreeInfo]:
    """Return swarm's worktrees; an empty list without one, or, unless *strict*, when git cannot list them."""
    try:
        opened = _open(repo)
    except (GitBroken, NotARepo):
        if strict:
            raise
        return []
    return opened.list_worktrees(strict=strict)


def get_worktree_info(role: str, session_id: str | None = None, *, repo: Repo = None) -> WorktreeInfo | None:
    """Return the worktree of a role, or None."""
    return _open(repo).get_worktree_info(role, session_id)


def worktree_exists(role: str, session_id: str | None = None, *, repo: Repo = None) -> bool:
    """Whether a role has a worktree."""
    return _open(repo).worktree_exists(role, session_id)


def lock_worktree(role: str, reason: str | None = None, *, session_id: str | None = None, repo: Repo = None) -> None:
    """Lock a role's worktree against removal."""
    _open(repo).lock_worktree(role, reason, session_id)


def unlock_worktree(role: str, *, session_id: str | None = None, repo: Repo = None) -> None:
    """Unlock a role's worktree."""
    _open(repo).unlock_worktree(role, session_id)


def get_worktree_head(role: str, session_id: str | None = None, *, repo: Repo = None) -> str | None:
    """Return the commit a role's worktree is at, or None."""
    return _open(repo).get_worktree_head(role, session_id)


def has_uncommitted_changes(role: str, session_id: str | None = None, *, repo: Repo = None) -> bool:
    """Whether a role's worktree has changes that are not committed."""
    return _open(repo).has_uncommitted_changes(role, session_id)


def cleanup_orphaned_worktrees(max_age_ms: int | None = None, *, repo: Repo = None) -> int:
    """Remove worktrees of sessions older than an age (default: 24 hours) and return how many."""
    return _open(repo).cleanup_orphaned_worktrees(max_age_ms)


def cleanup_swarm_branches(*, repo: Repo = None) -> int:
    """Delete swarm's branches without a worktree, each saved first, and return how many."""
    return _open(repo).cleanup_swarm_branches()


def full_cleanup(*, repo: Repo = None) -> dict[str, int]:
    """Remove all worktrees, all of swarm's branches and the empty folder; return the counts."""
    return _open(repo).full_cleanup()
