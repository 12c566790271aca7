"""The agent behind the paths: its state, its looks at its tasks, and its end.

All of it is read from the tasks of the library: whatever this process knows, the next one finds out in its first look.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from swarm import SwarmError, TaskState, __version__
from swarm.http_door import shown
from swarm.http_door.failures import Failure, of_error
from swarm.http_door.looking import BUSY_PAUSE, look_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm import AgentTask, Swarm
    from swarm.api.agent_server import AgentServer
    from swarm.http_door.guard import Caller
    from swarm.http_door.models import ConfigChange, ShutdownRequest, TaskRequest

T = TypeVar("T")
STARTING, IDLE, WORKING, ERROR, CANCELLING = "starting", "idle", "working", "error", "cancelling"
#: So long a cancel is waited for; a program gets ten seconds to end.
_CANCEL_SECONDS, _CANCEL_PAUSE = 12.0, 0.05
_DRAIN_SECONDS = 30
_LOGGED = 100
_THREADS = 4


class Agent:
    """One served agent.

    Attributes:
        server: its place and its tasks.
        ended: set when this process is to end.
    """

    def __init__(self, server: AgentServer, port: int) -> None:
        self.server = server
        self.ended = asyncio.Event()
        self._port = port
        self._began = time.monotonic()
        self._ready = self._ending = self._failed = False
        self._tasks: tuple[AgentTask, ...] = ()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="tasks")
        self._poke = asyncio.Event()
        self._looks = asyncio.Lock()
        self._end: asyncio.Task[None] | None = None

    async def do(self, act: Callable[[], T], task_id: str = "") -> T:
        """Call the library in a thread.

        Raises:
            Failure: it refused, or could not.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        except SwarmError as problem:
            failure = of_error(problem, task_id)
            if failure.code == "internal_error":
                self.server.log.say("error", f"a request failed: {problem.code}: {problem.message}")
            raise failure from None

    # --- looks ----------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Check the agent's program, then take tasks.

        Raises:
            SwarmError: it cannot do any.
        """
        log = self.server.log
        log.say("info", f"started, on port {self._port}")
        version = await asyncio.to_thread(self.server.check)
        await self._look()
        self._ready = True
        log.say("info", f"ready{f': {version}' if version else ''}")
        if self.server.box.startswith("noop"):
            log.say("warning", f"the program runs without a box: {self.server.box}")

    async def look_on(self) -> None:
        """Look at the tasks until the process ends: what is due starts, what is over is noted."""
        await look_on(self._look, lambda: bool(self._tasks or self._failed), self._poke, self.server.log)

    async def _look(self) -> None:
        async with self._looks:
            await self._look_once()

    async def _look_once(self) -> None:
        now = await asyncio.to_thread(self.server.unfinished)
        before = {one.id for one in self._tasks}
        gone = before - {one.id for one in now}
        for one in now:
            if one.id not in before:
                self.server.log.say("info", f"{one.id} {'is' if self._ready else 'was found again:'} {one.shown}")
        self._failed = False
        for task_id in gone:
            with contextlib.suppress(SwarmError):
                over = await asyncio.to_thread(self.server.task, task_id)
                self._failed |= over.state is TaskState.FAILED
                self._note_end(over)
        self._tasks = now

    def _note_end(self, task: AgentTask) -> None:
        why = f": {task.failure.type}" if task.failure is not None else ""
        self.server.log.say("error" if why else "info", f"{task.id} {task.state}{why}")

    @property
    def state(self) -> str:
        """The agent's state; ``error`` is shown until the next look."""
        if not self._ready:
            return STARTING
        if any(one.state is TaskState.CANCELLING for one in self._tasks):
            return CANCELLING
        if self._tasks:
            return WORKING
        return ERROR if self._failed else IDLE

    def status(self, caller: Caller) -> dict[str, Any]:
        """Return what ``/status`` shows; what a task is about is for programs of this user."""
        current = shown.current(self._tasks[0]) if self._tasks else None
        if current is not None and not (caller.has_token or caller.is_ours()):
            current["prompt_preview"] = ""
        says = self.server.agent.says
        proof = self.server.proof(caller.nonce, *caller.reached_at) if caller.nonce else None
        return {
            **({"proof": proof} if proof else {}),
            "type": "agent",
            "name": self.server.agent.name,
            "interfaces": ["statusable", "taskable"],
            "version": __version__,
            "state": self.state,
            "uptime_seconds": int(time.monotonic() - self._began),
            "current_task": current,
            "config": {
                "port": self._port,
                "model": says.model or None,
                "program": says.command.partition(" ")[0] or says.program,
                "sandbox": self.server.box,
            },
            "log": self.server.log.last(_LOGGED) if caller.has_token or caller.is_near else [],
        }

    def config(self) -> dict[str, Any]:
        """Return what ``/config`` shows."""
        says = self.server.agent.says
        return {
            "name": self.server.agent.name,
            "port": self._port,
            "bind": says.bind,
            "tls": says.tls is not None,
            "program": says.command.partition(" ")[0] or says.program,
            "role": says.role or None,
            "telemetry": says.telemetry,
            "model": says.model or None,
            "timeout": says.timeout,
            "hold": says.hold,
            "tries": says.tries,
            "log_level": says.log_level,
        }

    def config_tag(self) -> str:
        """Return the name of the configuration as it is now."""
        return f'"{sha256(json.dumps(self.config(), sort_keys=True).encode()).hexdigest()[:16]}"'

    async def configure(self, caller: Caller, asked: ConfigChange, if_match: str | None) -> None:
        """Change the configuration, for as long as the agent is served.

        Args:
            if_match: the caller's name of what it changes; None: whatever it is.
        """
        as_caller = await self._as(caller)
        await self.do(lambda: self.server.refuse_agents(as_caller, "configure"))
        if if_match is not None and if_match != self.config_tag():
            raise Failure("precondition_failed", "The configuration is another one by now")
        changes = asked.model_dump(exclude_unset=True)
        await self.do(
            lambda: self.server.configure({**changes, **({"model": asked.model or ""} if "model" in changes else {})})
        )

    # --- requests -------------------------------------------------------------------------------

    async def _as(self, caller: Caller) -> Swarm:
        return await self.do(lambda: self.server.for_caller(caller.pids()))

    async def submit(self, caller: Caller, asked: TaskRequest, task_id: str | None) -> AgentTask:
        """Accept a task.

        Args:
            task_id: by which the same request again makes no second task.
        """
        if not self._ready or self._ending:
            raise Failure("not_ready", "The agent is shutting down" if self._ending else "The agent is still starting")
        how = {**asked.how(), "task_id": task_id}
        as_caller = await self._as(caller)

        def accept() -> AgentTask:
            if asked.model is not None:
                self.server.check_model(asked.model)
            return self.server.submit(as_caller, asked.prompt, how)

        task = await self.do(accept)
        with contextlib.suppress(SwarmError, OSError):  # the task is accepted all the same
            await self._look()
        self._poke.set()
        return task

    async def task(self, task_id: str) -> AgentTask:
        """Return a task of this agent."""
        return await self.do(lambda: self.server.task(task_id), task_id)

    async def go_on(self, caller: Caller, task_id: str, prompt: str) -> AgentTask:
        """Give a held task its next prompt."""
        return await self._change(caller, task_id, lambda swarm: swarm.tasks.continue_(task_id, prompt))

    async def end(self, caller: Caller, task_id: str) -> AgentTask:
        """Complete a held task."""
        return await self._change(caller, task_id, lambda swarm: swarm.tasks.end(task_id))

    async def cancel(self, caller: Caller, task_id: str, *, wait: bool) -> AgentTask:
        """Cancel a task, and wait until it is over."""
        task = await self._change(caller, task_id, lambda swarm: swarm.tasks.cancel(task_id, wait=False))
        until = time.monotonic() + _CANCEL_SECONDS
        while wait and not task.is_over and time.monotonic() < until:
            await asyncio.sleep(_CANCEL_PAUSE)
            task = await self.task(task_id)
        self._poke.set()
        return task

    async def _change(self, caller: Caller, task_id: str, act: Callable[[Swarm], AgentTask]) -> AgentTask:
        await self.task(task_id)
        swarm = await self._as(caller)
        task = await self.do(lambda: act(swarm), task_id)
        self._poke.set()
        return task

    # --- the end --------------------------------------------------------------------------------

    async def shut_down(self, caller: Caller, asked: ShutdownRequest) -> None:
        """Begin to end, unless a task runs and may not be waited for."""
        as_caller = await self._as(caller)
        await self.do(lambda: self.server.refuse_agents(as_caller, "shut down"))
        running = await self.do(self._running)
        if running and not (asked.force or asked.drain):
            task_id = running[0].id
            words = f"Task {task_id} is running. Use force=true to terminate."
            raise Failure("task_in_progress", words, task_id=task_id)
        self.begin_end(0 if asked.force else asked.timeout_seconds)

    def asked_to_end(self) -> None:
        """End because of a signal: after its task; a second signal leaves the task to the next server."""
        if self._ending:
            self.ended.set()
        self.begin_end(_DRAIN_SECONDS)

    def begin_end(self, seconds: int) -> None:
        """Take no more tasks; end when none runs, or when the time is up and the one that runs is cancelled."""
        self._ending = True
        if self._end is not None:
            self._end.cancel()
        self.server.log.say("info", f"shutting down within {seconds} s")
        self._end = asyncio.create_task(self._ends(seconds))

    async def _ends(self, seconds: int) -> None:
        try:
            for _ in range(int(seconds / BUSY_PAUSE)):
                if not await self.do(self._running):
                    break
                await asyncio.sleep(BUSY_PAUSE)
            for one in await self.do(self._running):
                self.server.log.say("warning", f"{one.id} is cancelled: the agent ends")
                await self.do(lambda task_id=one.id: self.server.tasks.cancel(task_id))  # type: ignore[misc]
        except Failure as problem:
            self.server.log.say("warning", f"a task goes on: {problem}")
        self.ended.set()

    def _running(self) -> list[AgentTask]:
        return [one for one in self.server.unfinished() if one.state is not TaskState.IDLE]

    def close(self) -> None:
        """Say the last word."""
        self.server.log.say("info", "ended")
        self._threads.shutdown(wait=False)
