"""Everyday verbs on sets of worktrees: create, clean up, restore, recover."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import SwarmError, UsageProblem
from swarm.project import names
from swarm.project.errors import SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.roles.options import RoleOptions
    from swarm.roles.role import Role
    from swarm.sessions.reports import CleanupReport, CreateReport, RestoreReport
    from swarm.worktrees.reports import RecoverReport

from swarm.api.door import Door


class Cleaning(Door):
    """The base of the verbs that remove worktrees."""

    def _clean(self, request: Any, *, dry_run: bool) -> CleanupReport:
        from swarm.sessions.cleanup import cleanup
        from swarm.worktrees.saved import salvage_drop

        with files.os_errors("cannot clean up"):
            if dry_run:
                return cleanup.preview(self._world, request)
            if self._is_bare():
                found = cleanup.preview(self._world, request)
                if not (found.removed or found.branches or (request.force and found.warnings)):
                    return replace(found, dry_run=False)  # there is nothing, and no folder is made to say so
            with self._changing(request.verb):
                report = cleanup.cleanup(self._world, request)
                with contextlib.suppress(SwarmError, OSError):  # the next one does it
                    salvage_drop.sweep(self._world)
                return report

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
            return CleanupReport(warnings=(f"{tree} was in no session and is removed: {strays.told(aside)}",))


class Sets(Cleaning):
    """Verbs about sets of worktrees."""

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
            dry_run: only return the plan.

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
        elsewhere: bool = True,
        force: bool = False,
        discard: bool = False,
        keep_branches: bool = False,
        older_than_ms: int | None = None,
        teardown: bool = True,
        dry_run: bool = False,
    ) -> CleanupReport:
        """Remove worktrees and branches; swarm saves their content first, and can restore it.

        Args:
            sessions: sessions, or agents of them; or *everything*.
            elsewhere: of everything, also sessions made with another swarm directory; else they are skipped.
            force: also where work is uncommitted: it is salvaged, then removed.
            discard: do not salvage.  The only way to lose work; implies nothing about *force*.  A person has to
                ask for it, or a program with a grant.
            keep_branches: leave the branches.
            older_than_ms: only sessions made longer ago than this; those at risk are skipped, not an error.
            teardown: first run the commands that configuration and roles name.
            dry_run: only return the plan.

        Raises:
            WorkAtRisk: nothing was removed; ``facts['agents']`` lists the risks of each agent.
        """
        from swarm.sessions.cleanup import cleanup_request

        agents = self._agents_among(sessions)
        request = cleanup_request.Request(
            sessions=tuple(one for one in sessions if one not in agents),
            agents=tuple(agents.values()),
            everything=everything,
            elsewhere=elsewhere,
            force=force,
            discard=discard,
            keep_branches=keep_branches,
            older_than_ms=check_age(older_than_ms),
            role=self._role_in if teardown else None,
        )
        return self._clean(request, dry_run=dry_run)

    def _agents_among(self, words: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the words that name agents, with the session and the name of each; the others are sessions."""
        from swarm.project import targets

        found: dict[str, tuple[str, str]] = {}
        for word in words:
            name, where = targets.split_agent(word)
            session = names.check_session(name if where is None else where)
            if where is None and self._world.sessions.get(session) is not None:
                continue
            try:
                one = targets.find(self._world, word)
            except SessionNotFound:  # told of all at once, after the recovery
                if where is None:
                    continue
                raise
            if one.agent is not None:
                found[word] = one.session.name, one.agent.name
        return found

    def recover(self) -> RecoverReport:
        """Finish or roll back operations that a crash interrupted. Every changing verb does this first.

        This one also waits until all that was removed is deleted.
        """
        from swarm.sessions import recovery
        from swarm.worktrees.reports import RecoverReport

        if self._is_bare():
            return RecoverReport()
        with files.os_errors("cannot recover"), self._locked("recover"):
            return recovery.recover(self._world, wait=True)

    def restore(self, target: str, *, dry_run: bool = False) -> RestoreReport:
        """Restore a removed worktree: branch, tree, index and modes.

        Args:
            target: ``SESSION``, ``SESSION/AGENT`` or ``SESSION/AGENT@ID``; without an id the newest.

        Raises:
            SalvageNotFound: nothing was saved under this name.
            RestoreConflict: an existing file, folder or branch blocks it; nothing was changed.
        """
        from dataclasses import replace

        from swarm.sessions import restore

        with files.os_errors(f"cannot restore {target}"):
            if dry_run:
                return replace(restore.make_plan(self._world, target).report, dry_run=True)
            return self._restore(target)

    def _restore(self, target: str) -> RestoreReport:
        from swarm.sessions import restore

        with self._making(f"cannot restore {target}"):
            if not self._world.journal.unfinished():  # else half of an earlier try would be in the way of this one
                restore.make_plan(self._world, target)  # refuse before the first byte is written
                self._world.git.look_closely()
            with self._changing(f"restore {target}"):
                return restore.restore(self._world, target)


def options_of(roles: Sequence[Role | None]) -> tuple[RoleOptions, ...]:
    """Return the options of the roles, without their texts."""
    from swarm.roles.options import RoleOptions

    return tuple(role.options if role is not None else RoleOptions() for role in roles)


def _as_dry_run(report: CreateReport) -> CreateReport:
    return replace(report, dry_run=True)


def check_age(age_ms: int | None) -> int | None:
    """Refuse an age that nothing can be too young for.

    Raises:
        UsageProblem
    """
    if age_ms is not None and age_ms < 0:
        raise UsageProblem(f"cannot choose by age: it cannot be negative ({age_ms} ms)")
    return age_ms
