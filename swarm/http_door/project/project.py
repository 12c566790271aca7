"""The project behind the paths: who asks, what is known of it, the looks at its tasks, and the end of the server.

What it knows is read from the disk: the live model of the library looks at agents, the log of events has what
happened, and the first look at the tasks finds again what ran under an earlier server.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from swarm import SwarmError, __version__
from swarm.http_door.failures import Failure, of_error
from swarm.http_door.looking import look_on
from swarm.http_door.project.stream import Ring
from swarm.http_door.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swarm import AgentStatus, AgentTask, Live, Snapshot, Swarm
    from swarm.api.project_server import ProjectServer
    from swarm.http_door.guard import Caller

T = TypeVar("T")
STARTING, IDLE, WORKING = "starting", "idle", "working"
_LOGGED = 100
_THREADS = 8


class Project:
    """One served project.

    Attributes:
        server: what it does with the library.
        ring: the last events, for those who follow.
        throttle: counts wrong codes of browsers.
        ended: set when this process is to end.
    """

    def __init__(self, server: ProjectServer, port: int, ended: asyncio.Event) -> None:
        self.server = server
        self.ended = ended
        self.ring = Ring(server)
        self.throttle = Throttle()
        self._port = port
        self._began = time.monotonic()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="project")
        self._live: Live | None = None
        self._tasks: tuple[AgentTask, ...] = ()
        self._poke = asyncio.Event()
        self._ready = False

    # --- its life -------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Look at everything once: agents, and the tasks that go on from an earlier server.

        Raises:
            SwarmError
        """
        self.server.log.say("info", f"started, on port {self._port}")
        await self.ring.begin()
        self._live = await asyncio.to_thread(self.server.live)
        await self._look()
        self.server.log.say("info", "ready")
        self._ready = True

    async def look_on(self) -> None:
        """Look at the tasks until the process ends: what is due starts, what is over is settled."""
        await look_on(self._look, lambda: bool(self._tasks), self._poke, self.server.log)

    async def _look(self) -> None:
        now = await asyncio.to_thread(self.server.look_at_tasks)
        before = {one.id for one in self._tasks}
        for one in now:
            if one.id not in before:
                self.server.log.say("info", f"{one.id} {'is' if self._ready else 'was found again:'} {one.shown}")
        self._tasks = now

    def close(self) -> None:
        """Say the last word."""
        self.ring.close()
        if self._live is not None:
            self._live.close()
        self.server.log.say("info", "ended")
        self._threads.shutdown(wait=False)

    # --- the library ----------------------------------------------------------------------------

    async def look(self, act: Callable[[Swarm], T]) -> T:
        """Look at something with the library, in a thread; nothing depends on who asks.

        Raises:
            Failure: it cannot be looked at.
        """

        def do() -> T:
            with self.server.looking() as swarm:
                return act(swarm)

        return await self._do(do)

    async def act(self, caller: Caller, act: Callable[[Swarm], T]) -> T:
        """Do something with the library as whoever asks, in a thread.

        Raises:
            Failure: it was refused, or cannot be done.
        """

        def do() -> T:
            with self.server.lend(caller.pids(), caller.grant, by_person=bool(caller.browser)) as swarm:
                return act(swarm)

        try:
            return await self._do(do)
        finally:
            self._poke.set()

    async def _do(self, do: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, do)
        except SwarmError as problem:
            failure = of_error(problem)
            if failure.code == "internal_error":
                self.server.log.say("error", f"a request failed: {problem.code}: {problem.message}")
            raise failure from None

    # --- what is known --------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return how all agents stand.

        Raises:
            Failure: nothing is known yet.
        """
        if self._live is None or not self._ready:
            raise Failure("not_ready", "The server is still starting")
        return self._live.snapshot()

    def agents(self) -> Iterator[tuple[str, AgentStatus]]:
        """Yield each agent with its session."""
        for group in self.snapshot().sessions:
            for one in group.agents:
                yield group.session.name, one

    def agent(self, name: str) -> tuple[str, AgentStatus]:
        """Return an agent with its session.

        Args:
            name: as ``name``, or ``name@session``.
        """
        agent, _, session = name.partition("@")
        found = [(at, one) for at, one in self.agents() if one.agent.name == agent and session in ("", at)]
        if not found:
            raise Failure("not_found", f"Agent {name} not found")
        if len(found) > 1:
            raise Failure(
                "validation_error", f"{agent} is in several sessions: name one, such as {agent}@{found[0][0]}"
            )
        return found[0]

    def is_let(self, caller: Caller) -> bool:
        """Whether one who follows may still do so."""
        return not caller.browser or self.server.browsers.is_there(caller.browser)

    def status(self, caller: Caller) -> dict[str, Any]:
        """Return what ``/status`` shows; what goes on in the project is for who has a token."""
        known = None
        if self._live is not None and self._ready and caller.has_token:
            snapshot = self._live.snapshot()
            known = {
                "agents": dict(Counter(str(one.status.state) for _, one in self.agents())),
                "tasks": dict(Counter(str(one.shown) for one in self._tasks)),
                "sessions": len(snapshot.sessions),
                "approvals": len(snapshot.approvals),
                "problems": list(snapshot.problems),
                "event": self.ring.last,
                "watchers": self.ring.watchers,
            }
        proof = self.server.proof(caller.nonce, *caller.reached_at) if caller.nonce else None
        return {
            "type": "helper",
            "name": "project",
            "interfaces": ["statusable", "observable"],
            "version": __version__,
            "state": STARTING if not self._ready else WORKING if self._tasks else IDLE,
            "uptime_seconds": int(time.monotonic() - self._began),
            "current_task": None,
            "config": {"port": self._port, "model": None},
            "project": known,
            **({"proof": proof} if proof else {}),
            "log": self.server.log.last(_LOGGED) if caller.has_token else [],
        }
