"""Verbs that wait for agents and their events; the namespace ``swarm.events``, with the log of events."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from swarm.api.door import Door, again
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from swarm.agents.event_values import AgentEvent
    from swarm.eventlog.values import LogEvent, LogPage
    from swarm.sessions.values import SessionStatus
    from swarm.sessions.waiting import Reached

#: For so short a wait no live model is begun.
_SHORT = 1.0


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
            news = self._news if timeout is None or timeout > _SHORT else None
            return waiting.wait(self._world, self._post, targets, until, timeout=timeout, any_of=any_of, news=news)

    @contextmanager
    def _news(self) -> Iterator[Callable[[float], None]]:
        """Give a function that waits for a change of the live model."""
        from swarm.live.live import Live
        from swarm.live.values import LOST

        with Live(again(self._opened).world, git=None) as live:
            seen = live.snapshot().id

            def wait(seconds: float) -> None:
                nonlocal seen
                changes = live.wait(seen, seconds)
                if changes:
                    seen = live.snapshot().id if changes[-1].kind == LOST else changes[-1].id
                elif live.is_closed:  # it cannot go on; the looks do
                    time.sleep(min(seconds, _SHORT))

            yield wait

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
    """The log of events: ``log``, ``follow``. Events taken with ``wait_for_event(ack=False)``: ``done``, ``back``."""

    def log(self, after: int = 0, *, limit: int = 1000) -> LogPage:
        """Return the events of the project behind a number, oldest first. Never writes, never waits.

        Whoever watches writes down what changed: `swarm.live(tell=True)`, and the supervisors of agents when a state
        changes. What was not written, or is not kept any more, is an event of the kind ``gap``.

        Args:
            after: 0 begins at the oldest; later the ``last`` of the page before.
            limit: so many at most.
        """
        from swarm.eventlog.log import EventLog

        with files.os_errors("cannot read the log of events"), closing(EventLog(self._world.layout.state)) as log:
            return log.page(after, limit)

    def last(self) -> int:
        """Return the number of the newest event; 0 without any."""
        from swarm.eventlog.log import EventLog

        with files.os_errors("cannot read the log of events"), closing(EventLog(self._world.layout.state)) as log:
            return log.last_number()

    def follow(self, after: int | None = None, timeout: float | None = None) -> Iterator[LogEvent]:
        """Yield the events behind a number, then each new one as it is written; see ``log``.

        Args:
            after: None begins with the next event.
            timeout: it ends when nothing came for so many seconds; None: never.
        """
        from swarm.eventlog.log import EventLog

        with files.os_errors("cannot read the log of events"), closing(EventLog(self._world.layout.state)) as log:
            yield from log.follow(after, timeout)

    def record(self, found: Sequence[SessionStatus]) -> None:
        """Write into the log what changed, from one look at all agents; swarm's own processes call it."""
        from swarm.eventlog import changes
        from swarm.eventlog.recorder import Recorder
        from swarm.sessions.data import table

        if found:
            with files.os_errors("cannot write the log of events"), closing(Recorder(self._world.layout.state)) as log:
                log.record(table(found, trees=False), (changes.SESSION, changes.AGENT))

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
