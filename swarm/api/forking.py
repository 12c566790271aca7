"""The everyday verb ``fork``: another agent from an agent's worktree as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from swarm.api.door import Door
from swarm.kit.errors import raise_all

if TYPE_CHECKING:
    from swarm.api.swarm import Swarm
    from swarm.api.team import Team


class Forking(Door):
    """Verbs that make an agent from another one."""

    def fork(
        self,
        agent: str,
        name: str | None = None,
        session: str | None = None,
        *,
        task: str = "",
        setup: bool = True,
        dry_run: bool = False,
    ) -> Team:
        """Start another agent of the same role and session, from an agent's worktree as it is: all or nothing.

        The new agent has a branch and a worktree of its own. They begin at the other one's last commit, with its
        uncommitted changes and its new files, uncommitted. Ignored files, separate repositories, and a merge or
        rebase in progress are left behind. The other worktree is only read; an agent that writes there meanwhile may
        be seen half way.

        Args:
            name: of the new agent; default: the old one's with the next free number.
            task: its own task, in addition to the session's; default: the other agent's task.
            setup: as for ``create``.
            dry_run: only return the plan.

        Returns:
            The new agent alone.

        Raises:
            AgentNotFound, WorktreeNotFound, NameCollision, NotForAgents
            SwarmError: nothing was made and nothing runs; ``Refused`` holds several problems at once.
        """
        from swarm.api.team import Team
        from swarm.project.names import AgentSpec
        from swarm.sessions.create import create, fork

        with self._making(f"cannot fork {agent}"):
            found, one = self._find(agent, session)
            chosen = fork.name_for(found, one, name)
            texts, problems = self._role_texts([AgentSpec(chosen, one.role)], found.name, wanted=True)
            raise_all(f"cannot fork {one.name}@{found.name}", problems)
            request = fork.request(self._world, found, one, texts[0], chosen, task, setup=setup)
            plan = self._preflight(request, problems, dry_run=dry_run)
            if plan is not None and dry_run:
                return Team.of(cast("Swarm", self), replace(plan.report, dry_run=True))
            with self._changing(f"fork {one.name}@{found.name}"):
                return Team.of(cast("Swarm", self), create.create(self._world, request, plan and plan.facts))
