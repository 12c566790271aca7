"""Run teardown commands before a worktree is removed.

They run once the removal is decided and the agent has ended.  That is before the worktree's files are looked at and
saved, so nothing they write is lost.  At last swarm ends the processes that the setup left running.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from threading import Event
from typing import TYPE_CHECKING

from swarm.kit import commandline as rules
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.kit.words import count
from swarm.project.world import in_session, new_operation_id
from swarm.roles.options import Policy, RoleOptions, Teardown
from swarm.worktrees import transaction
from swarm.worktrees.errors import TeardownFailed
from swarm.worktrees.setup import commands, setup, setup_notes, setup_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role
    from swarm.worktrees.examine import Target


@dataclass(frozen=True, slots=True)
class _Job:
    """The teardown of one worktree."""

    session: Session
    agent: Agent
    tree: Path
    parts: tuple[Teardown, ...]
    options: RoleOptions


class Teardowns:
    """The teardown of some worktrees; roles are read as they are now, and nothing runs without them.

    Attributes:
        warnings: what went wrong and does not count.
    """

    def __init__(self, world: World, targets: Iterable[Target], role: Callable[[Session, str], Role] | None) -> None:
        self._world = world
        self.warnings: list[str] = []
        self._jobs = [self._job(one, role) for one in targets if one.agent.prepared]

    def _job(self, target: Target, role: Callable[[Session, str], Role] | None) -> _Job:
        options = RoleOptions()
        if role is None or target.kind != "worktree":
            return _Job(target.session, target.agent, target.tree, (), options)
        try:
            options = role(target.session, target.agent.role).options
        except SwarmError as problem:  # a role that is gone must not keep its worktree for ever
            name = f"{target.agent.name}@{target.session.name}"
            self.warnings.append(f"teardown of {name}: its role's commands were skipped: {problem.message}")
        config = self._world.settings.teardown.values()
        config["policy"] = Policy(config["policy"])
        parts = tuple(part for part in (options.teardown, Teardown(**config)) if part.run)
        return _Job(target.session, target.agent, target.tree, parts, options)

    def lines(self, session: str, agent: str) -> tuple[str, ...]:
        """Return the commands of one worktree."""
        mine = (one for one in self._jobs if (one.session.name, one.agent.name) == (session, agent))
        return tuple(line for one in mine for part in one.parts for line in part.run)

    def run(self) -> bool:
        """Run them, the worktrees side by side; say whether anything was done in them.

        Raises:
            TeardownFailed: one failed whose policy is *abort*.
        """
        busy = [one for one in self._jobs if one.parts]
        failures: list[str] = []
        if busy:
            self._world.progress(f"teardown of {count(len(busy), 'worktree')}")
            failures = self._run_all(busy)
        for text in (*self.warnings, *failures):
            name = ",".join(dict.fromkeys(one.session.name for one in self._jobs))
            transaction.note(self._world, new_operation_id(), "teardown", name, text)
        if failures:
            kept = self._world.layout.state / setup_notes.FAILED_LOG
            hint = f"whole output: {kept}; or skip teardown: --no-teardown"
            raise TeardownFailed(f"nothing was removed: {'; '.join(failures)}", hint=hint)
        return bool(busy)

    def _run_all(self, busy: Sequence[_Job]) -> list[str]:
        stop = Event()
        try:
            files.make_folders(self._world.layout.trash, 0o700)
            with ThreadPoolExecutor(min(len(busy), max(2, os.cpu_count() or 1))) as pool:
                try:
                    found = list(pool.map(lambda one: self._run(one, stop), busy))
                except BaseException:
                    stop.set()
                    raise
        finally:
            with suppress(OSError):  # then the next command removes it
                files.remove_empty(self._world.layout.trash)
        self.warnings += [text for policy, text in chain.from_iterable(found) if policy is Policy.WARN]
        return [text for policy, text in chain.from_iterable(found) if policy is Policy.ABORT]

    def _run(self, job: _Job, stop: Event) -> list[tuple[Policy, str]]:
        """Run all commands of one worktree; return the failures."""
        name = f"{job.agent.name}@{job.session.name}"
        log = self._world.layout.trash / f"teardown-{job.agent.name}-{job.session.name}.log"
        stamp = rules.hook_stamp(str(self._world.layout.root), "teardown", job.session.name, job.agent.name)
        commands.end_stamped(stamp)  # of an earlier try that was killed
        world = in_session(self._world, job.session)
        environ = setup_run.environment(world, job.session.name, job.agent, job.options.env, "teardown")
        failures = []
        try:
            for policy, limit, line in [(part.policy, part.timeout, line) for part in job.parts for line in part.run]:
                if stop.is_set():
                    break
                done = commands.run(
                    line,
                    cwd=job.tree,
                    environ={**environ, rules.STAMP: stamp},
                    log=log,
                    limit=limit,
                    stopped=stop.is_set,
                )
                if done.outcome:
                    setup_run.keep_log(self._world, log)
                    failures.append((policy, f"teardown of {name}: {setup_run.in_words(done)}"))
        finally:
            with suppress(OSError):
                files.unlink_if_there(log)
        return failures

    def end_servers(self) -> None:
        """End the processes that setups and teardowns of these worktrees left running."""
        root = str(self._world.layout.root)
        stamps = [setup.stamp(self._world, one.agent.operation, one.agent.name) for one in self._jobs]
        stamps += [rules.hook_stamp(root, "teardown", one.session.name, one.agent.name) for one in self._jobs]
        if stamps:
            commands.end_stamped(*stamps)
