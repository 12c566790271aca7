"""Verbs on worktree sets: create, list, clean up, restore."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import SwarmError, UsageProblem
from swarm.project import names
from swarm.project.errors import AgentNotFound, SessionNotFound
from swarm.worktrees.errors import WorktreeNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.roles.options import RoleOptions
    from swarm.roles.role import Role
    from swarm.sessions.reports import CleanupReport, CreateReport, RestoreReport, WorktreeDetails
    from swarm.sessions.values import WorktreeInfo
    from swarm.worktrees.reports import RecoverReport, SalvageEntry

from swarm.api.door import Door


class Sets(Door):
    """Verbs about worktrees and what was saved of them."""

    def worktrees(self, session: str | None = None, *, look: bool = True) -> tuple[WorktreeInfo, ...]:
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

    def _find_worktree(self, agent: str, session: str | None) -> tuple[Any, Any]:
        """Find an agent whose worktree is meant, not what runs in it: then that is what is not there."""
        try:
            return self._find(agent, session)
        except AgentNotFound as problem:
            hint = None if problem.hint == AgentNotFound.default_hint else problem.hint
            raise WorktreeNotFound(problem.message, hint=hint) from None

    def unfinished_acts(self) -> tuple[str, ...]:
        """Say what ``unfinished`` operations are: such as ``create of feature-x``."""
        found = []
        for operation in self._world.journal.unfinished():
            try:
                record = self._world.journal.read(operation)
            except (SwarmError, OSError):
                continue  # it has just ended
            found.append(f"{record.get('verb', '?')} of {record.get('session') or '?'}")
        return tuple(found)

    def create(
        self,
        session: str,
        roles: str | Sequence[str | names.AgentSpec],
        *,
        base: str | None = None,
        instructions: bool = True,
        setup: bool = True,
        dry_run: bool = False,
    ) -> CreateReport:
        """Make one worktree per agent, each on its own branch: all of them or none.

        Args:
            session: a name such as ``feature-x``; an existing session gets further agents.
            roles: ``["researcher", "developer:2", "lead=architect"]``, or the same as one text with commas.
            base: where they start; default: where the main checkout is, and for an agent its own last commit.
            instructions: put the roles' texts into the worktrees.
            setup: give them the files and run the commands that configuration and roles name.
            dry_run: only say what would be done.

        Raises:
            SwarmError: nothing was made; ``Refused`` holds several problems at once.

        Example:
            >>> swarm.create("feature-x", ["researcher", "developer"])  # doctest: +SKIP
        """
        from swarm.sessions.create import create, create_request

        name = names.check_new_session(session)
        specs = names.expand_roles(roles)
        found, problems = self._role_texts(specs, name, wanted=instructions or setup)
        texts = found if instructions else (None,) * len(specs)
        setups = options_of(found) if setup else None
        start, checkout = self._start_of(base)
        request = create_request.Request(name, specs, texts, start, setup=setups, checkout=checkout)
        with self._making(f"cannot create session {name}"):
            # Refuse before the first byte is written.
            plan = self._preflight(request, problems, dry_run=dry_run)
            if plan is not None and dry_run:
                return _as_dry_run(plan.report)
            with self._changing(f"create {name}"):
                return create.create(self._world, request, plan and plan.facts)

    def cleanup(
        self,
        sessions: Sequence[str] = (),
        *,
        everything: bool = False,
        force: bool = False,
        discard: bool = False,
        keep_branches: bool = False,
        older_than_ms: int | None = None,
        teardown: bool = True,
        dry_run: bool = False,
    ) -> CleanupReport:
        """Remove worktrees and branches; what they hold is saved first and can be restored.

        Args:
            sessions: which; or *everything*.
            force: also where work is uncommitted: it is salvaged, then removed.
            discard: do not salvage.  The only way to lose work; implies nothing about *force*.  A person has to
                ask for it, or a program with a grant.
            keep_branches: leave the branches.
            older_than_ms: only sessions made longer ago than this; those at risk are skipped, not an error.
            teardown: first run the commands that configuration and roles name.
            dry_run: only say what would be done.

        Raises:
            WorkAtRisk: nothing was removed; ``facts['agents']`` lists the risks of each agent.
        """
        from swarm.sessions.cleanup import cleanup_request

        request = cleanup_request.Request(
            sessions=tuple(names.check_session(s) for s in sessions),
            everything=everything,
            force=force,
            discard=discard,
            keep_branches=keep_branches,
            older_than_ms=_age(older_than_ms),
            role=self._role_in if teardown else None,
        )
        return self._clean(request, dry_run=dry_run)

    def prune_sessions(self, *, older_than_ms: int, dry_run: bool = False) -> CleanupReport:
        """Remove sessions older than this whose agents neither run nor have uncommitted work."""
        from swarm.callers import rights
        from swarm.sessions.cleanup import cleanup_request

        rights.check(self._world, "prune_sessions", attempt="cannot prune the sessions")
        request = cleanup_request.Request(
            everything=True, older_than_ms=_age(older_than_ms), role=self._role_in, verb="session prune"
        )
        return self._clean(request, dry_run=dry_run)

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

        A folder at its place that is in no session is removed, too; with *force* what is in it goes into the salvage.
        """
        from swarm.sessions.cleanup import cleanup_request

        try:
            found, one = self._find_worktree(agent, session)
        except (WorktreeNotFound, SessionNotFound):
            if session is None:
                raise
            tree = self._world.layout.worktree(names.check_name("role", agent), names.check_session(session))
            report = self._remove_stray(tree, force=force, dry_run=dry_run)
            if report is None:
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

    def _remove_stray(self, tree: Path, *, force: bool, dry_run: bool = False) -> CleanupReport | None:
        """Remove a folder that belongs to no session; None without such a folder."""
        from swarm.sessions.reports import CleanupReport
        from swarm.worktrees import strays

        with files.os_errors(f"cannot remove {tree}"):
            if not strays.is_stray(self._world, tree):
                return None
            strays.check(tree, force=force)
            if dry_run:
                return CleanupReport(warnings=(f"{tree} is in no session and would be removed",), dry_run=True)
            with self._changing("worktree remove"):
                aside = strays.remove(self._world, tree, force=force) if strays.is_stray(self._world, tree) else None
            what = "it was empty" if aside is None else f"its content is in {aside}"
            return CleanupReport(warnings=(f"{tree} was in no session and is removed: {what}",))

    def _clean(self, request: Any, *, dry_run: bool) -> CleanupReport:
        from swarm.sessions.cleanup import cleanup
        from swarm.worktrees.saved import salvage_drop

        with files.os_errors("cannot clean up"):
            if dry_run:
                return cleanup.preview(self._world, request)
            if self._is_bare():
                found = cleanup.preview(self._world, request)
                if not (found.removed or found.branches):
                    return replace(found, dry_run=False)  # there is nothing, and no folder is made to say so
            with self._changing(request.verb):
                report = cleanup.cleanup(self._world, request)
                with contextlib.suppress(SwarmError, OSError):  # the next one does it
                    salvage_drop.sweep(self._world)
                return report

    def prune(self, *, dry_run: bool = False) -> CleanupReport:
        """Forget worktrees whose folder is gone; branches stay, and what git still knows of them is salvaged."""
        from swarm.callers import rights
        from swarm.sessions.cleanup import cleanup_request

        rights.check(self._world, "prune", attempt="cannot prune the worktrees")
        request = cleanup_request.Request(only_missing=True, keep_branches=True, force=True, verb="worktree prune")
        return self._clean(request, dry_run=dry_run)

    def recover(self) -> RecoverReport:
        """Finish or roll back operations that a crash interrupted. Every changing verb does this first."""
        from swarm.worktrees import transaction
        from swarm.worktrees.reports import RecoverReport

        if self._is_bare():
            return RecoverReport()
        with files.os_errors("cannot recover"), self._locked("recover"):
            return transaction.recover(self._world)

    def restore(self, target: str, *, dry_run: bool = False) -> RestoreReport:
        """Bring back what a cleanup removed: branch, tree, index and modes.

        Args:
            target: ``SESSION``, ``SESSION/AGENT`` or ``SESSION/AGENT@ID``; without an id the newest.

        Raises:
            SalvageNotFound: nothing was saved under this name.
            RestoreConflict: what is there now is in the way; nothing was changed.
        """
        from dataclasses import replace

        from swarm.sessions import restore

        with files.os_errors(f"cannot restore {target}"):
            if dry_run:
                return replace(restore.make_plan(self._world, target).report, dry_run=True)
            if not self._world.journal.unfinished():  # else half of an earlier try would be in the way of this one
                restore.make_plan(self._world, target)  # refuse before the first byte is written
            with self._changing(f"restore {target}"):
                return restore.restore(self._world, target)

    def salvaged(self, session: str | None = None, *, dropped: bool = False) -> tuple[SalvageEntry, ...]:
        """Return what was saved, newest first. Never writes, never waits.

        Args:
            dropped: instead what was dropped and can still be restored.
        """
        from swarm.worktrees.saved import salvage

        with files.os_errors("cannot list the salvage"):
            return salvage.entries(self._world, session, gone=dropped)

    def salvage_entry(self, target: str) -> SalvageEntry:
        """Return one saved worktree: ``SESSION/AGENT`` or ``SESSION/AGENT@ID``."""
        from swarm.worktrees.saved import salvage

        with files.os_errors("cannot read the salvage"):
            return salvage.find(self._world, target)[0]

    def drop_salvage(
        self,
        targets: Sequence[str] = (),
        *,
        everything: bool = False,
        older_than_ms: int | None = None,
        now: bool = False,
    ) -> tuple[SalvageEntry, ...]:
        """Drop saved work: it is listed no more, and deleted when ``cleanup.keep_dropped`` is over.

        Args:
            targets: which entries: all of a ``SESSION``, all of a ``SESSION/AGENT``, or one; or *everything*.
            older_than_ms: only what was saved longer ago than this.
            now: delete it at once, and what was dropped before.
        """
        from swarm.callers import rights
        from swarm.worktrees.saved import salvage_drop

        rights.check(self._world, "drop_salvage", attempt="cannot drop the salvage")
        wanted, age = tuple(targets), _age(older_than_ms)
        with files.os_errors("cannot drop the salvage"):
            if self._is_bare() and not salvage_drop.to_drop(
                self._world, wanted, everything=everything, older_than_ms=age, now=now
            ):
                return ()  # that, or a refusal, before the first byte is written
            with self._changing("salvage drop"):
                return salvage_drop.drop(self._world, wanted, everything=everything, older_than_ms=age, now=now)

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

    def _to_mark(self, verb: str, agent: str, session: str | None) -> tuple[Any, Any]:
        """Find an agent whose worktree is to be changed in a small way; refuse where the caller may not."""
        from swarm.callers import rights

        found, one = self._find_worktree(agent, session)
        what = f"cannot {verb.replace('_', ' ')} {'of ' if '_' in verb else ''}{one.name}@{found.name}"
        rights.check(self._world, verb, [(found, one)], attempt=what)
        return found, one


def options_of(roles: Sequence[Role | None]) -> tuple[RoleOptions, ...]:
    """Return what the roles say beside their texts."""
    from swarm.roles.options import RoleOptions

    return tuple(role.options if role is not None else RoleOptions() for role in roles)


def _as_dry_run(report: CreateReport) -> CreateReport:
    return replace(report, dry_run=True)


def _age(age_ms: int | None) -> int | None:
    """Refuse an age that nothing can be too young for.

    Raises:
        UsageProblem
    """
    if age_ms is not None and age_ms < 0:
        raise UsageProblem(f"cannot choose by age: it cannot be negative ({age_ms} ms)")
    return age_ms
