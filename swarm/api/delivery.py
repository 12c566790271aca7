"""The namespace ``swarm.delivery``: tell agents of messages, and the user of agents; swarm's launchers call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.sessions.values import SessionStatus


class Delivery(Door):
    """Bring messages to the notice of agents, and the ends and questions of agents to that of the user."""

    def nudge(self, agent: str, session: str) -> str:
        """Type a line into the pane of an idle agent if unannounced messages wait; return the outcome."""
        from swarm.delivery import nudge as delivery

        found, one = self._find(agent, session)
        self._refuse_strangers("delivery.nudge", found, one)
        with files.os_errors(f"cannot tell {agent} of its messages"):
            return delivery.nudge(self._world, self._typist(), found, one)

    def heartbeat(self, agent: str, session: str, period: str) -> bool:
        """Send an agent the message of its role for a time of idleness; False when its role has none.

        Args:
            period: name of that time; the message is sent once for it.
        """
        from swarm.delivery import nudge as delivery

        found, one = self._find(agent, session)
        self._refuse_strangers("delivery.heartbeat", found, one)
        with files.os_errors(f"cannot send the heartbeat of {agent}"):
            return delivery.heartbeat(self._world, found, one, period)

    def report_endings(self) -> int:
        """Report every ended agent to the user's inbox, once; return the number of reports."""
        from swarm.agents import endings, orphans

        with files.os_errors("cannot report ended agents"):
            told = endings.report(self._world)
            if orphans.are_any(self._world) or endings.are_behind(self._world):
                with self._changing("tell of ended agents"):
                    pass  # that takes in what they committed in their boxes, tells of them, and stops orphans
        return told

    def announce(self, found: Sequence[SessionStatus], *, only: Sequence[str] | None = None) -> None:
        """Tell what a look at all agents has found: in tmux, to the user, and in queues of events.

        Args:
            only: of these sessions; all are shown in tmux.
        """
        from swarm.agents import outside
        from swarm.sessions import status as agents

        chosen = [one for one in found if only is None or one.session.name in only]
        agents.label(self._world, found)
        self.notify_user(chosen)
        self.report_endings()
        outside.look(self._world, chosen)

    def notify_user(self, found: Sequence[SessionStatus]) -> int:
        """Notify the user of agents that newly wait, failed or are done; return their number."""
        from swarm.agents import notify

        return notify.notify_user(self._world, found)
