"""The class ``AsyncSwarm``: the verbs that wait, for programs on asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from swarm.kit.errors import SwarmError
from swarm.live.values import LOST
from swarm.messages.queues import LEASE
from swarm.sessions.errors import WaitOver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Unpack

    from swarm.agents.event_values import AgentEvent
    from swarm.api.swarm import Swarm
    from swarm.bus.protocol import Claim
    from swarm.live.live import Live
    from swarm.live.values import Change, Snapshot
    from swarm.messages.office.post import Taken
    from swarm.sessions.waiting import Reached
    from swarm.tasks.requests import TaskOptions
    from swarm.tasks.values import AgentTask, TaskEvent, TaskMessage, TaskOutput, TaskPage, TaskState

P = ParamSpec("P")
T = TypeVar("T")

#: So many seconds a thread waits at most before it looks whether its task was cancelled.
STEP = 0.4


class AsyncSwarm:
    """A ``Swarm`` on asyncio: each verb runs in a thread, and a wait that is cancelled ends within a second.

    Events, messages and tasks that a cancelled wait had taken wait again for the next reader.

    Example:
        >>> swarm = AsyncSwarm(Swarm.open())                                    # doctest: +SKIP
        >>> team = await swarm.run(swarm.swarm.start, "fx", ["developer"])      # doctest: +SKIP
        >>> event = await swarm.wait_for_event(session="fx")                    # doctest: +SKIP
    """

    def __init__(self, swarm: Swarm) -> None:
        self.swarm = swarm
        self.messages = AsyncMessages(swarm)
        self.queues = AsyncQueues(swarm)
        self.tasks = AsyncTasks(swarm)

    def __repr__(self) -> str:
        return f"<AsyncSwarm {self.swarm.root}>"

    async def run(self, verb: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run any verb in a thread. One that was cancelled goes on to its end there: nothing is left half done."""
        return await asyncio.to_thread(verb, *args, **options)

    @contextlib.asynccontextmanager
    async def live(self, *, git: float | None = 10.0, tell: bool = False) -> AsyncIterator[AsyncLive]:
        """Follow the project for a block; see ``Swarm.live``.

        Example:
            >>> async with swarm.live() as live:                                # doctest: +SKIP
            ...     async for change in live.changes(after=live.snapshot().revision):
            ...         print(change.kind, change.subject)
        """
        live = await asyncio.to_thread(self.swarm.live, git=git, tell=tell)
        try:
            yield AsyncLive(live)
        finally:
            await asyncio.to_thread(live.close)

    async def wait_for_event(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  # as in Swarm
        kinds: Sequence[str] = (),
        *,
        session: str | None = None,
        agents: Sequence[str] = (),
        ack: bool = True,
    ) -> AgentEvent | None:
        """Return the next event of the agents that one has started; see ``Swarm.wait_for_event``."""
        swarm, left = self.swarm, _left(timeout)

        def look() -> AgentEvent | None:
            return swarm.wait_for_event(min(STEP, left()), kinds, session=session, agents=agents, ack=False)

        def give_back(event: AgentEvent | None) -> None:
            if event is not None:
                swarm.events.back(event)

        while True:
            event = await _step(look, give_back)
            if event is not None and ack:
                swarm.events.done(event)  # at once: cancelled in between, the event would be lost
            if event is not None or left() <= 0:
                return event

    async def events(
        self, kinds: Sequence[str] = (), *, session: str | None = None, agents: Sequence[str] = ()
    ) -> AsyncIterator[AgentEvent]:
        """Yield each event as it comes, without end."""
        while True:
            event = await self.wait_for_event(None, kinds, session=session, agents=agents)
            if event is not None:
                yield event

    async def wait_for(
        self,
        agents: Sequence[str],
        until: str = "idle",
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # as in Swarm
        any_of: bool = False,
    ) -> tuple[Reached, ...]:
        """Wait until agents are where they are waited for; see ``Swarm.wait_for``."""
        left = _left(timeout)
        while True:
            try:
                return await _step(lambda: self.swarm.wait_for(agents, until, timeout=min(STEP, left()), any_of=any_of))
            except WaitOver:
                if left() <= 0:
                    raise


class AsyncLive:
    """The live model on asyncio. No reader takes a thread, so there may be thousands.

    Attributes:
        live: the model itself.
    """

    def __init__(self, live: Live) -> None:
        self.live = live

    def __repr__(self) -> str:
        return f"<AsyncLive {self.live.snapshot().id}>"

    def snapshot(self) -> Snapshot:
        """Return all that is known now. It never changes."""
        return self.live.snapshot()

    async def changes(self, after: int | str, timeout: float | None = None) -> AsyncIterator[Change]:  # noqa: ASYNC109  # as in Live
        """Yield each change behind a revision; see ``Live.changes``."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        end = self.live.call(lambda: _call_soon(loop, news.set))
        try:
            while True:
                news.clear()
                found = self.live.wait(after, 0)
                for one in found:
                    yield one
                    if one.kind == LOST:
                        return
                if found:
                    after = found[-1].revision
                    continue
                if self.live.is_closed:
                    return
                try:
                    await asyncio.wait_for(news.wait(), timeout)
                except TimeoutError:
                    return
        finally:
            end()


def _call_soon(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Have something done in a loop, from any thread; one that has ended needs nothing more."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(act)


class AsyncMessages:
    """The inbox of an ``AsyncSwarm``; see ``swarm.messages``."""

    def __init__(self, swarm: Swarm) -> None:
        self._swarm = swarm

    def __repr__(self) -> str:
        return f"<AsyncMessages of {self._swarm.root}>"

    async def take(self, inbox: str | None = None, *, wait: float | None = 0.0, limit: int = 100) -> Taken | None:
        """Take the next messages; see ``swarm.messages.take``.

        Args:
            wait: seconds to wait for the first; None waits as long as it takes.
        """
        swarm, left = self._swarm, _left(wait)

        def give_back(taken: Taken | None) -> None:
            if taken is not None:
                swarm.messages.nack([message.id for message in taken.messages], inbox)

        while True:
            taken = await _step(lambda: swarm.messages.take(inbox, wait=min(STEP, left()), limit=limit), give_back)
            if taken is not None or left() <= 0:
                return taken


class AsyncQueues:
    """The task queues of an ``AsyncSwarm``; see ``swarm.queues``."""

    def __init__(self, swarm: Swarm) -> None:
        self._swarm = swarm

    def __repr__(self) -> str:
        return f"<AsyncQueues of {self._swarm.root}>"

    async def take(self, queue: str, *, wait: float | None = 0.0, limit: int = 1, lease: float = LEASE) -> Claim | None:
        """Take the next tasks of a queue; see ``Queue.take``.

        Args:
            wait: seconds to wait for the first; None waits as long as it takes.
        """
        tasks, left = self._swarm.queues.get(queue), _left(wait)

        def give_back(claim: Claim | None) -> None:
            if claim is not None:
                tasks.back([message.id for message in claim.messages])

        while True:
            claim = await _step(lambda: tasks.take(wait=min(STEP, left()), limit=limit, lease=lease), give_back)
            if claim is not None or left() <= 0:
                return claim


class AsyncTasks:
    """The tasks of an ``AsyncSwarm``; see ``swarm.tasks``. A cancelled wait leaves its task at work."""

    def __init__(self, swarm: Swarm) -> None:
        self._swarm = swarm

    def __repr__(self) -> str:
        return f"<AsyncTasks of {self._swarm.root}>"

    async def submit(self, prompt: str, **options: Unpack[TaskOptions]) -> AgentTask:
        """Accept a task and start it; see ``swarm.tasks.submit``."""
        return await asyncio.to_thread(self._swarm.tasks.submit, prompt, **options)

    async def get(self, task_id: str) -> AgentTask:
        """Return a task as it is now."""
        return await asyncio.to_thread(self._swarm.tasks.get, task_id)

    async def list(
        self, *, finished: bool = False, states: Sequence[TaskState | str] = (), agent: str = ""
    ) -> tuple[AgentTask, ...]:
        """Return tasks, oldest first; see ``swarm.tasks.list``."""
        return await asyncio.to_thread(self._swarm.tasks.list, finished=finished, states=states, agent=agent)

    async def continue_(self, task_id: str, prompt: str) -> AgentTask:
        """Give a held task its next prompt."""
        return await asyncio.to_thread(self._swarm.tasks.continue_, task_id, prompt)

    async def message(self, task_id: str, text: str, *, message_id: str = "") -> TaskMessage:
        """Send a held task a message; see ``swarm.tasks.message``."""
        return await asyncio.to_thread(self._swarm.tasks.message, task_id, text, message_id=message_id)

    async def messages(self, task_id: str) -> tuple[TaskMessage, ...]:
        """Return the messages to a task, each with where it stands."""
        return await asyncio.to_thread(self._swarm.tasks.messages, task_id)

    async def take(self, task_id: str, timeout: float | None = None) -> AgentTask:  # noqa: ASYNC109  # as in Swarm
        """Move the conversation of a held task into a pane; see ``swarm.tasks.take``."""
        return await asyncio.to_thread(self._swarm.tasks.take, task_id, timeout)

    async def give_back(self, task_id: str) -> AgentTask:
        """Hold a task again that was taken over; see ``swarm.tasks.give_back``."""
        return await asyncio.to_thread(self._swarm.tasks.give_back, task_id)

    async def end(self, task_id: str) -> AgentTask:
        """Complete a held task."""
        return await asyncio.to_thread(self._swarm.tasks.end, task_id)

    async def cancel(self, task_id: str, *, wait: bool = True) -> AgentTask:
        """End a task and everything that its program started."""
        return await asyncio.to_thread(self._swarm.tasks.cancel, task_id, wait=wait)

    async def events(self, task_id: str, *, after: int = 0) -> tuple[TaskEvent, ...]:
        """Return the events of a task behind a number."""
        return await asyncio.to_thread(self._swarm.tasks.events, task_id, after=after)

    async def history(self, page: int = 1, limit: int = 20) -> TaskPage:
        """Return a page of the finished tasks, newest first."""
        return await asyncio.to_thread(self._swarm.tasks.history, page, limit)

    async def output(self, task_id: str) -> tuple[TaskOutput, ...]:
        """Return what the program wrote in each run."""
        return await asyncio.to_thread(self._swarm.tasks.output, task_id)

    async def wait(self, task_id: str, timeout: float | None = None) -> AgentTask:  # noqa: ASYNC109  # as in Swarm
        """Wait until a task is over, or idle because it is held; see ``swarm.tasks.wait``."""
        swarm, left = self._swarm, _left(timeout)
        while True:
            try:
                return await _step(lambda: swarm.tasks.wait(task_id, min(STEP, left())))
            except WaitOver:
                if left() <= 0:
                    raise


def _left(seconds: float | None) -> Callable[[], float]:
    """Return a function that tells how many of these seconds are left."""
    if seconds is None:
        return lambda: STEP
    deadline = time.monotonic() + seconds
    return lambda: max(0.0, deadline - time.monotonic())


async def _step(act: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
    """Run a short act in a thread; after a cancellation wait for its end and undo it."""
    doing = asyncio.ensure_future(asyncio.to_thread(act))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        with contextlib.suppress(SwarmError):
            result = await doing
            if undo is not None:
                await asyncio.to_thread(undo, result)
        raise
