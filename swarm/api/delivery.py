"""Verbs on panes: nudge an agent about messages, send its heartbeat, type text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.api.worktrees import Sets
from swarm.kit import files

if TYPE_CHECKING:
    from swarm.project.ports import Typist


class Delivery(Sets):
    """Verbs that type into panes and report on agents."""

    def type_into(self, agent: str, text: str, session: str | None = None, *, enter: bool = True) -> str:
        """Type a text into an agent's pane, literally and whole, and press Enter; return the pane's id.

        Control characters other than line ends and tabs are taken out. A program that does not know bracketed paste
        takes each line end for an Enter.

        Args:
            enter: press Enter at the end.

        Raises:
            AgentNotRunning: it has no pane.
            PaneBusy: its program has ended, or somebody scrolls in the pane; nothing was typed.
            NotForAgents: keys answer dialogs, and those are for people.
        """
        from swarm.delivery import nudge as delivery

        found, one = self._find(agent, session)
        self._person(f"cannot type into {agent}")
        with files.os_errors(f"cannot type into {agent}"):
            return delivery.type_into(self._world, self._typist(), found, one, text, enter=enter)

    def nudge(self, agent: str, session: str) -> str:
        """Type a line into the pane of an idle agent if unannounced messages wait; return the outcome."""
        from swarm.delivery import nudge as delivery

        found, one = self._find(agent, session)
        self._refuse_strangers("nudge", found, one)
        with files.os_errors(f"cannot tell {agent} of its messages"):
            return delivery.nudge(self._world, self._typist(), found, one)

    def send_heartbeat(self, agent: str, session: str, period: str) -> bool:
        """Send an agent the message of its role for a time of idleness; False when its role has none.

        Args:
            period: name of that time; the message is sent once for it.
        """
        from swarm.delivery import nudge as delivery

        found, one = self._find(agent, session)
        self._refuse_strangers("send_heartbeat", found, one)
        with files.os_errors(f"cannot send the heartbeat of {agent}"):
            return delivery.heartbeat(self._world, found, one, period)

    def tell_endings(self) -> int:
        """Tell the user's inbox of every agent that has ended, once; return of how many."""
        from swarm.agents import endings

        with files.os_errors("cannot report ended agents"):
            return endings.tell(self._world)

    def _typist(self) -> Typist:
        from swarm.delivery.typist import Typist

        terminal: Any = self._world.terminal
        return Typist(terminal)
