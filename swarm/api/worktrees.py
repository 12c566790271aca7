"""The namespace ``swarm.worktrees``: look at worktrees, remove, lock and update them, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.api.sets import Cleaning
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.project import names
from swarm.project.errors import AgentNotFound, SessionNotFound
from swarm.worktrees.errors import WorktreeNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.sessions.reports import CleanupReport, WorktreeDetails
    from swarm.sessions.values import SessionStatus, WorktreeInfo
    from swarm.worktrees.reports import Pooled
    from swarm.worktrees.setup.setup_values import Notes


class Worktrees(Cleaning):
    """The worktrees of agents. Call it for all of them, or those of one session."""

    def __call__(self, session: str | None = None, *, look: bool = True) -> tuple[WorktreeInfo, ...]:
        """Return every worktree of swarm's, or one session's. Never writes, never waits.

        Args:
            look: also ask git for uncommitted changes and commits (one git call each).
        """
        from swarm.sessions import listing

        with files.os_errors("cannot list the worktrees"):
            return listing.worktrees(self._world, session, self._role_names(), look=look)

    def show(self, agent: str, session: str | None = None) -> WorktreeDetails:
        """Look closely at one agent's worktree. Never writes, never waits."""
        from swarm.sessions import listing

        with files.os_errors(f"cannot show {agent}"):
            return listing.details(self._world, *self._find_worktree(agent, session))

    def path(self, agent: str, session: str | None = None) -> Path:
        """Return the folder of an agent's worktree.

        Raises:
            WorktreeNotFound: there is no such agent, or its folder is gone.
        """
        found, one = self._find_worktree(agent, session)
        tree: Path = self._world.layout.root / one.worktree
        if not tree.is_dir():
            raise WorktreeNotFound(f"the worktree of {one.name}@{found.name} is gone: {tree}")
        return tree

    def environment(self, agent: str, session: str | None = None) -> dict[str, str]:
        """Return the variables that an agent's program gets, made from the caller's environment, for a shell there."""
        from swarm.agents.launching.environment import environment_of

        found, one = self._find_worktree(agent, session)
        return environment_of(self._world, found, one, self._role_in(found, one.role))

    def _find_worktree(self, agent: str, session: str | None) -> tuple[Any, Any]:
        """Find an agent by its worktree, for errors about missing worktrees."""
        try:
            return self._find(agent, session)
        except AgentNotFound as problem:
            hint = None if problem.hint == AgentNotFound.default_hint else problem.hint
            raise WorktreeNotFound(problem.message, hint=hint) from None

    def setup_of(self, agent: str, session: str | None = None) -> Notes | None:
        """Return the notes of the setup of an agent's worktree; None without a setup."""
        from swarm.worktrees.setup import setup_notes

        found, one = self._find(agent, session)
        with files.os_errors(f"cannot read the notes about {agent}"):
            return setup_notes.read(self._world, found.name, one.name)

    def remove(
        self,
        agent: str,
        session: str | None = None,
        *,
        force: bool = False,
        discard: bool = False,
        keep_branch: bool = False,
        teardown: bool = True,
        dry_run: bool = False,
    ) -> CleanupReport:
        """Remove one agent's worktree and branch, as ``cleanup`` does.

        A folder at its place that is in no session is removed, too; with *force* its content goes into the salvage.
        """
        from swarm.sessions.cleanup import cleanup_request
        from swarm.worktrees import strays

        try:
            found, one = self._find_worktree(agent, session)
        except (WorktreeNotFound, SessionNotFound):
            if session is None:
                raise
            tree = self._world.layout.worktree(names.check_name("role", agent), names.check_session(session))
            report = self._remove_stray(tree, force=force, dry_run=dry_run)
            if report is None:
                strays.refuse(self._world, tree)
                raise
            return report
        request = cleanup_request.Request(
            agents=((found.name, one.name),),
            force=force,
            discard=discard,
            keep_branches=keep_branch,
            role=self._role_in if teardown else None,
            verb="worktree remove",
        )
        return self._clean(request, dry_run=dry_run)

    def prune(self, *, dry_run: bool = False) -> CleanupReport:
        """Forget worktrees whose folder is gone; branches stay, and swarm salvages the files that git still has."""
        from swarm.callers import rights
        from swarm.sessions.cleanup import cleanup_request

        rights.check(self._world, "worktrees.prune", attempt="cannot prune the worktrees")
        request = cleanup_request.Request(only_missing=True, keep_branches=True, force=True, verb="worktree prune")
        return self._clean(request, dry_run=dry_run)

    def pool(self) -> tuple[Pooled, ...]:
        """Return the worktrees without work that wait for the next start, oldest first. Never writes, never waits.

        The setting ``worktrees.pool`` says how many ``cleanup`` keeps; unless it does there are none.
        """
        from swarm.worktrees import pool
        from swarm.worktrees.reports import Pooled

        with files.os_errors("cannot look into the pool"):
            found = pool.parked(self._world.layout)
        return tuple(Pooled(one.item["session"], one.item["agent"], one.size, one.parked_ms) for one in found)

    def drain_pool(self) -> int:
        """Delete the worktrees that wait for the next start; return how many."""
        from swarm.callers import rights
        from swarm.worktrees import trash

        rights.check(self._world, "worktrees.drain_pool", attempt="cannot drain the pool")
        if self._is_bare():
            return 0
        with files.os_errors("cannot drain the pool"), self._changing("pool drain"):
            return trash.drain_pool(self._world)

    def take_in(self, agent: str, session: str | None = None) -> str:
        """Take in what an agent committed in its box; return the reason where it is refused, empty if it is not.

        swarm does this by itself after each commit, and before it looks at an agent's work.
        """
        from swarm.sandbox import fresh

        found, one = self._find(agent, session)
        if not one.is_boxed:
            return ""
        with files.os_errors(f"cannot take in the work of {agent}"), self._changing(f"take in {agent}"):
            alone = self._session(found.name)._replace(agents=(one,))  # what is there is read below the lock
            return "".join(fresh.take_in(self._world, [alone], everything=True).values())

    def look_outside(self, found: Sequence[SessionStatus]) -> int:
        """Note which files changed outside of the worktree of each agent without a box whose turn is over.

        That is evidence and no proof: somebody changed them during the turn. ``AgentStatus.outside`` has it.
        Supervisors have this done after each turn, where the setting `agents.watch_outside` says so.

        Args:
            found: as ``status`` returns it.

        Returns:
            How many notes were made.
        """
        from swarm.agents import outside

        return outside.look(self._world, found)

    def lock(self, agent: str, session: str | None = None, *, reason: str = "") -> WorktreeInfo:
        """Lock a worktree against removal, in git's own way."""
        from swarm.sessions import marks

        self._to_mark("lock", agent, session)
        with files.os_errors(f"cannot lock {agent}"), self._changing(f"lock {agent}"):
            return marks.lock(self._world, *self._to_mark("lock", agent, session), reason)

    def unlock(self, agent: str, session: str | None = None) -> WorktreeInfo:
        """Take such a lock away."""
        from swarm.sessions import marks

        self._to_mark("unlock", agent, session)
        with files.os_errors(f"cannot unlock {agent}"), self._changing(f"unlock {agent}"):
            return marks.unlock(self._world, *self._to_mark("unlock", agent, session))

    def update_role(self, agent: str, session: str | None = None, *, force: bool = False) -> WorktreeInfo:
        """Put the role's present text into an existing worktree.

        Args:
            force: also when the agent edited the file; that one is kept (``WorktreeInfo.kept``).

        Raises:
            WorkAtRisk: the agent edited it, and *force* was not given.
        """
        from swarm.sessions import marks

        in_session, one = self._to_mark("update_role", agent, session)
        role = self._role_in(in_session, one.role)
        with files.os_errors(f"cannot update the role of {agent}"), self._changing(f"update role of {agent}"):
            # Read again below the lock: a record read before could bring back an agent removed since.
            found = self._to_mark("update_role", agent, session)
            return marks.update_role(self._world, *found, role, force=force)

    def update_changed_roles(
        self, agent: str | None = None, session: str | None = None, *, problems: list[SwarmError] | None = None
    ) -> tuple[WorktreeInfo, ...]:
        """Put each role's text that changed since into its worktrees, and tell the agents by a message.

        An agent whose program was never given a file is left alone, and so is a file that the agent edited.

        Args:
            agent: only this one; default: all, or those of one session.
            problems: a list that gets the agents that could not be updated or notified; the others go on.

        Returns:
            The worktrees that have a new text.
        """
        from swarm.sessions import marks

        found = [] if problems is None else problems
        updated = []
        with files.os_errors("cannot read the sessions"):
            every = self._sessions() if session is None else (self._session(session),)
        chosen = (
            [self._to_mark("update_changed_roles", agent, session)]
            if agent
            else [(s, one) for s in every for one in s.agents]
        )
        for in_session, one in chosen:
            try:
                if marks.has_old_role(one, self._role_in(in_session, one.role)):
                    updated.append(self.update_role(one.name, in_session.name))
                    if one.program:
                        marks.tell_new_role(self._post, one, in_session)
            except SwarmError as problem:
                found.append(problem)
        return tuple(updated)

    def _to_mark(self, verb: str, agent: str, session: str | None) -> tuple[Any, Any]:
        """Find an agent whose worktree is to be changed in a small way; refuse where the caller may not."""
        from swarm.callers import rights
        from swarm.sessions import marks

        found, one = self._find_worktree(agent, session)
        marks.refuse_shared(found, one)
        what = f"cannot {verb.replace('_', ' ')} {'of ' if '_' in verb else ''}{one.name}@{found.name}"
        rights.check(self._world, f"worktrees.{verb}", [(found, one)], attempt=what)
        return found, one
