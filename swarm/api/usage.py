"""The namespace ``swarm.usage``: tokens, cost and time of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from swarm.usage.values import UsageReport


class Usage(Door):
    """The usage of agents. Call it for the report."""

    def __call__(self, session: str | None = None, *, everything: bool = False) -> UsageReport:
        """Return the usage of agents: tokens, cost, minutes. Never writes, never waits.

        Args:
            session: only this one; also agents of it that were removed.
            everything: also all other agents that were removed.

        Raises:
            SessionNotFound: there is none of this name, and nothing is known of an earlier one.

        Example:
            >>> swarm.usage("feature-x").total.cost        # doctest: +SKIP
        """
        from swarm.usage import count

        with files.os_errors("cannot count usage"):
            return count.report(self._world, session, everything=everything)

    def notify(self, agent: str, session: str) -> int:
        """Report an agent's use of its limits to the user's inbox; return the number of reports. For its supervisor."""
        from swarm.agents.budgets import limits

        with files.os_errors(f"cannot report the budget of {agent}"):
            found, one = self._find(agent, session)
            self._refuse_strangers("usage.notify", found, one)
            return limits.report(self._world, found, one)
