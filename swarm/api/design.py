"""The worktree functions of the user's documents, as methods.

Names, defaults and results are the design's (``create_worktree``, ``full_cleanup`` …).  A role
without a session means the one session that has it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.api.swarm import Swarm
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.project import names
from swarm.project.errors import AgentNotFound, SessionNotFound
from swarm.roles.errors import RoleNotFound
from swarm.worktrees.errors import WorktreeExists, WorktreeNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.project.model import WorktreeEntry
    from swarm.sessions.values import WorktreeInfo

#: 24 hours, in milliseconds.
DEFAULT_MAX_AGE_MS = 86_400_000


class Design(Swarm):
    """The design's functions."""

    # --- the repository --------------------------------------------------------------------------

    def is_git_repository(self) -> bool:
        """Whether this is a git work tree; an open ``Swarm`` always is."""
        return True

    def get_git_root(self) -> Path:
        """Return the main checkout, also when asked from a linked worktree."""
        return self._world.layout.root

    def has_commits(self) -> bool:
        """Whether the repository has a commit."""
        return self._world.git.resolve_commit("HEAD") is not None

    def get_current_branch(self) -> str | None:
        """Return the branch of the main checkout, ``HEAD`` when detached, None before the first commit."""
        if not self.has_commits():
            return None
        return self._world.git.head_branch() or "HEAD"

    def branch_exists(self, branch: str) -> bool:
        """Whether a branch (not a tag, not a commit) of this name exists."""
        ref = f"refs/heads/{branch}"
        return bool(branch) and "\0" not in branch and ref in self._world.git.refs(ref)

    def validate_repository(self) -> None:
        """Make sure that worktrees can be made here.

        Raises:
            NotARepo: there is no commit yet.
        """
        from swarm.sessions.create.create_checks import pin_base

        pin_base(self._world, None)

    # --- names -------------------------------------------------------------------------------------

    def generate_branch_name(self, role: str, session_id: str | None = None) -> str:
        """Return ``swarm/<role>-<session>``."""
        session = names.check_session(session_id)
        return names.branch_name(names.check_name("role", role), session, self._world.settings.worktrees.branch_prefix)

    def new_session_id(self) -> str:
        """Return a fresh session name: the milliseconds since 1970, or the next number if that is taken."""
        return names.new_session_id(self._world.sessions.names())

    def get_worktree_path(self, role: str, session_id: str | None = None) -> Path:
        """Return where the worktree of a role is, or would be.

        Without a session: the one that has the role; when none has, ``.worktrees/<role>``.
        """
        names.check_name("role", role)
        if session_id is not None:
            return self._world.layout.worktree(role, names.check_session(session_id))
        info = self.get_worktree_info(role)
        return info.path if info is not None else self._world.layout.base / role

    # --- create ------------------------------------------------------------------------------------

    def create_worktree(
        self,
        role: str,
        session_id: str | None = None,
        base_branch: str | None = None,
        copy_role_config: bool = True,
        *,
        reuse: bool = False,
    ) -> Path:
        """Make the worktree of one role and return its path.

        Args:
            reuse: return an existing worktree of this role and session instead of refusing.

        Raises:
            RoleNotFound, NotARepo, WorktreeExists, BranchExists, GitFailed
        """
        session = names.check_session(session_id)
        if reuse and (there := self._existing(role, session)) is not None:
            return there
        made = self.create_worktrees([role], session, base_branch, copy_role_config=copy_role_config)
        return next(iter(made.values()))

    def _existing(self, role: str, session: str) -> Path | None:
        try:
            info = self.get_worktree_info(role, session)
        except SessionNotFound:
            return None
        return info.path if info is not None and not info.missing else None

    def create_worktrees(
        self,
        roles: Sequence[str],
        session_id: str | None = None,
        base_branch: str | None = None,
        copy_role_config: bool = True,
    ) -> dict[str, Path]:
        """Make the worktrees of several roles, all or none; return agent → path in the order given."""
        session = names.check_session(session_id)
        return self.create(session, roles, base=base_branch, instructions=copy_role_config).paths()

    # --- role instructions -------------------------------------------------------------------------

    def get_role_config_path(self, role: str) -> Path:
        """Return the file with a role's instructions; without one, its path in the project."""
        try:
            return Path(self._role(role).source)
        except RoleNotFound:
            return self._world.layout.root / names.ROLES_DIR / names.check_name("role", role) / "CLAUDE.md"

    def role_config_exists(self, role: str) -> bool:
        """Whether a role has instructions."""
        try:
            self._role(role)
        except RoleNotFound:
            return False
        return True

    def copy_role_config(self, role: str, worktree_path: str | Path) -> Path:
        """Put a role's instructions into any worktree's root and return the file.

        In a worktree of swarm's it is written down as swarm's own file: while unchanged it does not count as work,
        and ``update_role_config`` replaces it.

        Raises:
            RoleNotFound: there are none.
            WorktreeExists: a file of that name exists already; it stays.
        """
        from swarm.callers import rights
        from swarm.sessions import listing, marks
        from swarm.worktrees.hiding import hide_now

        found = self._role(role)
        tree = Path(worktree_path)
        rights.check_tree(self._world, "copy_role_config", tree)
        if not os.fspath(worktree_path) or not tree.is_dir():
            raise WorktreeNotFound(f"cannot put the role's instructions into {tree}: there is no such folder")
        file = self._world.settings.worktrees.instructions_file
        changing = self._changing("copy role")
        with files.os_errors("cannot copy the role's instructions"), changing:
            if files.exists(tree / file):
                raise WorktreeExists(
                    f"{tree / file} is there already and stays as it is",
                    details=str(tree / file),
                    hint="to bring swarm's own copy up to date use update_role_config",
                )
            owner = listing.agent_at(self._world, tree)
            if owner is not None:
                marks.update_role(self._world, *owner, found, force=False)
            else:
                hide_now(self._world, file, tree)
                files.write_new(tree / file, found.instructions.encode("utf-8", "surrogateescape"))
        return tree / file

    def update_role_config(self, role: str, session_id: str | None = None, *, force: bool = False) -> None:
        """Put a role's present text into its existing worktree; an edited file only with *force*."""
        self.worktrees.update_role(role, session_id, force=force)

    # --- list --------------------------------------------------------------------------------------

    def list_all_worktrees(self) -> tuple[WorktreeEntry, ...]:
        """Return git's worktree list, the main checkout included."""
        with files.os_errors("cannot list the worktrees"):
            return self._world.git.worktrees()

    def list_worktrees(self, *, strict: bool = False) -> list[WorktreeInfo]:
        """Return swarm's worktrees; an empty list when git cannot list them, unless *strict*."""
        try:
            found = self.worktrees(look=False)
            return [info for info in found if not info.missing]
        except SwarmError:
            if strict:
                raise
            return []

    def get_worktree_info(self, role: str, session_id: str | None = None) -> WorktreeInfo | None:
        """Return the worktree of a role, or None.

        One without a record counts too: ``.worktrees/<role>``, as the design has it, or ``<role>-<session>``.

        Raises:
            Ambiguous: several sessions have the role.
        """
        from swarm.sessions import listing

        with files.os_errors("cannot look at the worktree"):
            try:
                session, agent = listing.find_agent(self._world, names.check_name("role", role), session_id)
            except (AgentNotFound, SessionNotFound):
                return listing.unrecorded(self._world, role, session_id, self._role_names())
            found = listing.worktrees(self._world, session.name, (), look=True)
            return next((info for info in found if info.agent == agent.name and not info.missing), None)

    def worktree_exists(self, role: str, session_id: str | None = None) -> bool:
        """Whether a role has a worktree."""
        return self.get_worktree_info(role, session_id) is not None

    def get_worktree_head(self, role: str, session_id: str | None = None) -> str | None:
        """Return the commit a role's worktree is at, or None."""
        info = self.get_worktree_info(role, session_id)
        return info.head if info is not None else None

    def has_uncommitted_changes(self, role: str, session_id: str | None = None) -> bool:
        """Whether a role's worktree has changes that are not committed, untracked files included.

        Raises:
            WorktreeNotFound
        """
        info = self.get_worktree_info(role, session_id)
        if info is None:
            raise WorktreeNotFound(f"role {role} has no worktree")
        return info.dirty is not False  # unknown counts as work

    def lock_worktree(self, role: str, reason: str | None = None, session_id: str | None = None) -> None:
        """Lock a role's worktree against removal."""
        self.worktrees.lock(role, session_id, reason=reason or "")

    def unlock_worktree(self, role: str, session_id: str | None = None) -> None:
        """Unlock a role's worktree."""
        self.worktrees.unlock(role, session_id)

    # --- remove ------------------------------------------------------------------------------------

    def remove_worktree(
        self, role: str, force: bool = False, delete_branch: bool = True, session_id: str | None = None
    ) -> None:
        """Remove a role's worktree and its branch; a missing worktree counts as success.

        A folder at its place that is in no session is removed, too; with *force* its content goes into the salvage.

        Raises:
            WorkAtRisk: there is work in it and *force* was not given, or what is there is not swarm's.
        """
        from swarm.sessions import listing
        from swarm.worktrees import strays

        with files.os_errors("cannot remove the worktree"):
            try:
                session, agent = listing.find_agent(self._world, names.check_name("role", role), session_id)
            except (AgentNotFound, SessionNotFound):
                tree = self.get_worktree_path(role, session_id)
                if self._remove_stray(tree, force=force) is None:
                    info = self.get_worktree_info(role, session_id)
                    strays.refuse(self._world, info.path if info is not None else tree)
                return
        self.worktrees.remove(agent.name, session.name, force=force, keep_branch=not delete_branch)

    def remove_all_worktrees(self, force: bool = False, delete_branches: bool = True) -> int:
        """Remove every worktree of swarm's and return how many.

        Raises:
            CleanupFailed: some could not be removed; all others are.
        """
        sessions = tuple(session.name for session in self._sessions())
        return self.cleanup(sessions, force=force, keep_branches=not delete_branches).worktrees_removed

    def prune_worktrees(self) -> None:
        """Forget worktrees whose folder is gone; only swarm's own, unlike ``git worktree prune``."""
        self.worktrees.prune()

    def cleanup_orphaned_worktrees(self, max_age_ms: int | None = None) -> int:
        """Remove worktrees of sessions older than an age (default: 24 hours) and return how many.

        Those with work at risk, locked or in use are left alone; an unknown age is not old.

        Raises:
            UsageProblem: the age is negative.
        """
        age = self._world.settings.worktrees.auto_cleanup_age if max_age_ms is None else max_age_ms
        report = self.cleanup(everything=True, older_than_ms=age)
        return report.worktrees_removed

    def cleanup_swarm_branches(self) -> int:
        """Delete swarm's branches without a worktree, each saved first, and return how many."""
        from swarm.sessions.cleanup import cleanup

        with files.os_errors("cannot clean up the branches"):
            if not (self._world.layout.state.is_dir() or cleanup.leftover_branches(self._world)):
                return 0
            with self._changing("cleanup branches"):
                return len(cleanup.sweep_branches(self._world))

    def full_cleanup(self) -> dict[str, int]:
        """Remove all worktrees (their work is salvaged), all of swarm's branches and the empty folder."""
        report = self.cleanup(everything=True, force=True)
        return {"worktrees": report.worktrees_removed, "branches": report.branches_removed}
