"""Verbs that wait for agents and their events; the namespace ``swarm.events``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.agents.event_values import AgentEvent
    from swarm.sessions.waiting import Reached


class Waiting(Door):
    """Verbs that wait. Events are for the caller that started the agents: an agent, else the user."""

    def wait_for(
        self, agents: Sequence[str], until: str = "idle", *, timeout: float | None = None, any_of: bool = False
    ) -> tuple[Reached, ...]:
        """Wait until agents are ``idle``, ``done``, ``stopped``, or a ``message`` waits for them.

        Args:
            any_of: until the first of them is.

        Raises:
            WaitOver: *timeout* seconds were over first.
            NotReached: it can no longer happen, for example because an agent failed.
        """
        from swarm.sessions import waiting

        with files.os_errors("cannot wait"):
            targets = waiting.targets(self._post, agents, until)
            return waiting.wait(self._world, self._post, targets, until, timeout=timeout, any_of=any_of)

    def wait_for_event(
        self,
        timeout: float | None = None,
        kinds: Sequence[str] = (),
        *,
        session: str | None = None,
        agents: Sequence[str] = (),
        ack: bool = True,
    ) -> AgentEvent | None:
        """Return the next event of the agents that one has started; None when *timeout* seconds were over first.

        They wait on the disk until they are read, come in order, and each reaches one reader, once.

        Args:
            timeout: None waits as long as it takes, 0 only looks.
            kinds: only these: ``WorkerComplete``, ``AgentIdle``, ``AgentWaiting``, ``BudgetNear``, ``BudgetReached``;
                the others stay.
            session: only events of this session; the others stay.
            agents: only events of these agents, each ``name`` or ``name@session``; the others stay.
            ack: it is done when it is returned. With False it is in the hands of this process until
                ``swarm.events.done``, and comes again if the process ends before that.

        Raises:
            UsageProblem: there is no such kind.
            WaitCycle: agents would wait for each other.

        Example:
            >>> event = swarm.wait_for_event(timeout=600)                # doctest: +SKIP
            >>> event.kind, event.worker, event.status                   # doctest: +SKIP
            ('WorkerComplete', 'developer@feature-x', 'success')
        """
        from swarm.agents import event_queue

        with files.os_errors("cannot wait for an event"):
            self._ready_for("wait-event")
            event = event_queue.wait(
                self._world, self._post, timeout=timeout, kinds=tuple(kinds), session=session, agents=tuple(agents)
            )
            if event is not None and ack:
                event_queue.done(self._post, event.id)
        return event


class Events(Door):
    """Events taken with ``wait_for_event(ack=False)``: settle them, or give them back."""

    def done(self, event: AgentEvent | str) -> None:
        """Finish an event taken with ``ack=False``; it is never delivered again.

        Args:
            event: it, or its id.

        Raises:
            ClaimLost: it is not claimed: done already, or given back.
        """
        from swarm.agents import event_queue

        with files.os_errors("cannot finish the event"):
            event_queue.done(self._post, event if isinstance(event, str) else event.id)

    def back(self, event: AgentEvent | str) -> None:
        """Give back an event taken with ``ack=False``: it waits again.

        Args:
            event: it, or its id.

        Raises:
            ClaimLost: it is not claimed: done already, or given back.
        """
        from swarm.agents import event_queue

        with files.os_errors("cannot return the event"):
            event_queue.back(self._post, event if isinstance(event, str) else event.id)
