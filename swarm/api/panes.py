"""The namespace ``swarm.panes``: the tmux panes of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.api.door import Door
from swarm.kit import files
from swarm.project import names
from swarm.project.errors import AgentNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.sessions.values import SessionStatus


class Panes(Door):
    """The panes in which the programs of agents run."""

    def show(self, agent: str, session: str | None = None) -> str:
        """Make an agent's pane the one that an attached terminal shows; return its id.

        Args:
            agent: an agent; or a session, for its first agent that has a pane.
        """
        from swarm.agents import running

        try:
            found, one = self._find(agent, session)
        except AgentNotFound:
            whole = self._world.sessions.get(names.check_session(agent)) if session is None else None
            if whole is None:
                raise
            found, one = whole, running.first_with_pane(self._world, whole)
        pane = running.pane_of(self._world, found, one)
        self._world.terminal.select(pane)
        return pane

    def label(self, found: Sequence[SessionStatus]) -> None:
        """Show states in the pane borders and the status line."""
        from swarm.sessions import status as agents

        agents.label(self._world, found)

    def attach_command(self) -> tuple[str, ...]:
        """Return the argv that shows swarm's panes in this terminal, also from inside tmux."""
        terminal: Any = self._world.terminal
        argv: tuple[str, ...] = terminal.switch_argv() if terminal.is_inside() else terminal.attach_argv()
        return argv

    def type(self, agent: str, text: str, session: str | None = None, *, enter: bool = True) -> str:
        """Type a text into an agent's pane, literally and whole, and press Enter; return the pane's id.

        Control characters other than line ends and tabs are taken out. A program that does not know bracketed paste
        takes each line end for an Enter.

        Args:
            enter: press Enter at the end.

        Raises:
            AgentNotRunning: it has no pane.
            PaneBusy: its program has ended, or a user scrolls in the pane; nothing was typed.
            NotForAgents: keys answer dialogs, and those are for people.
        """
        from swarm.delivery import nudge as delivery

        found, one = self._find(agent, session)
        self._person(f"cannot type into {agent}")
        with files.os_errors(f"cannot type into {agent}"):
            return delivery.type_into(self._world, self._typist(), found, one, text, enter=enter)
