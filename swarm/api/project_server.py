"""What the server of a project does with the library: act for whoever calls, follow the project, find tasks again."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from swarm.api import task_options
from swarm.api.door import Opened, again
from swarm.api.serving import Pool
from swarm.api.swarm import Swarm
from swarm.callers import caller, rights
from swarm.kit import files, redaction
from swarm.kit.errors import UsageProblem
from swarm.machine import identity
from swarm.project import server as place
from swarm.services import credentials, definition, proof
from swarm.services.browsers import CODE_SECONDS, Browsers
from swarm.services.browsers import Browser as Browser  # noqa: PLC0414  # offered here
from swarm.services.errors import ComponentNotFound
from swarm.services.log import Log
from swarm.services.roots import root_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from swarm.api.serving import Place
    from swarm.callers.caller import Caller
    from swarm.eventlog.recorder import Recorder
    from swarm.live.live import Live
    from swarm.project.world import World
    from swarm.tasks.requests import TaskOptions
    from swarm.tasks.values import AgentTask

_LOG, _BROWSERS = "server.log", "browsers.json"
_OVER = ("completed", "failed", "cancelled")
#: So many seconds an opened project is used again: settings and roles may change.
_FRESH = 10.0


class ProjectServer:
    """The server of a project, while this process is it.

    Attributes:
        root: the main checkout.
        token: what requests by TCP have to name.
        log: its log.
        browsers: those that a person has signed in.
        otlp_token: it takes no reports of programs.
        certificate: it speaks no TLS, as it listens on this machine alone.
    """

    otlp_token = b""
    certificate = None

    def __init__(self, place_: Place, environ: dict[str, str]) -> None:
        self.root = place_.root
        self.state = place_.state
        world = Swarm.open(self.root, environ=environ)._opened.world  # noqa: SLF001  # the same library
        with files.os_errors("cannot serve this repository"):
            self._servers = root_of(world, make=True)
            self.token = credentials.token(self._servers)
            credentials.check(self._servers)
            self._environ = credentials.environment(self._servers, environ)
            self.browsers = Browsers(place.folder_of(self.state) / _BROWSERS)
            known = (*redaction.values_of(self._environ), self.token.decode("ascii"))
            self.log = Log(place.folder_of(self.state) / _LOG, "server", "info", known)
        self._agents = Pool(self.root)
        self._mutex = threading.Lock()
        self._opened: Opened | None = None
        self._since = 0.0
        self._free: list[Opened] = []
        self._recorder: Recorder | None = None
        self._told: tuple[AgentTask, ...] | None = None
        self._new: set[str] = set()

    # --- who calls ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lend(self, pids: Sequence[int] | None, grant: str = "", *, by_person: bool = False) -> Iterator[Swarm]:
        """Give swarm as the caller uses it, to one thread: an agent that calls is that agent, whichever door it takes.

        Args:
            pids: the processes at the other end; None where the machine cannot tell.
            grant: the token of a grant that the request shows.
            by_person: the request comes from a browser that a person has signed in.

        Raises:
            NotForAgents, IdentityRefused
        """
        state = os.fspath(self.state)
        for pid in pids or ():
            who = identity.whoami({}, pid, state)
            if who is not None:
                with self._agents.lend(who, pid) as swarm:
                    yield swarm
                return
        with self._lend(caller.of_processes(state, pids, grant, by_person=by_person)) as swarm:
            yield swarm

    @contextlib.contextmanager
    def looking(self) -> Iterator[Swarm]:
        """Give swarm to one thread that only looks, or does what every look does."""
        with self._lend(caller.Caller(caller.NOBODY, doubt="it is the server itself")) as swarm:
            yield swarm

    @contextlib.contextmanager
    def _lend(self, calling: Caller) -> Iterator[Swarm]:
        opened = self._take()
        world = opened.world._replace(calling=calling)
        try:
            yield Swarm(Opened(world, opened.swarm_dir, opened.start))
        finally:
            with self._mutex:
                if self._is_fresh(opened):
                    self._free.append(opened)

    def _take(self) -> Opened:
        """Return an opened project that nobody else uses."""
        with self._mutex:
            if self._opened is None or time.monotonic() - self._since > _FRESH:
                swarm = Swarm.open(self.root, environ=self._environ)
                self._opened, self._since, self._free = swarm._opened, time.monotonic(), []  # noqa: SLF001  # the same
            return self._free.pop() if self._free else again(self._opened)

    def _is_fresh(self, opened: Opened) -> bool:
        return self._opened is not None and opened.world.settings is self._opened.world.settings

    def proof(self, nonce: str, host: str, port: int) -> str:
        """Return what shows that this server belongs to its swarm directory; see ``services/proof.py``."""
        return proof.prove(self.token, nonce, host, port)

    # --- what happens ---------------------------------------------------------------------------

    def live(self) -> Live:
        """Follow the project, and tell what is seen: in tmux, to the user, in the log of events."""
        with self._lend(caller.Caller(caller.NOBODY, doubt="it is the server itself")) as swarm:
            return swarm.live(tell=True)

    def look_at_tasks(self) -> tuple[AgentTask, ...]:
        """Return the tasks that are not over: what is over is settled, what is due starts, and the log tells of it."""
        from swarm.eventlog import changes
        from swarm.eventlog.recorder import Recorder
        from swarm.tasks.errors import TaskNotFound

        with self.looking() as swarm:
            found = swarm.tasks()
            if self._recorder is None:
                self._recorder = Recorder(self.state)
            new, self._new = self._new, set()
            if self._told == found and not new:
                return found
            told = self._recorder.known(changes.TASK)
            over: list[AgentTask] = []
            for task_id in (told.keys() | new) - {one.id for one in found}:
                with contextlib.suppress(TaskNotFound):
                    over += [swarm.tasks.get(task_id)] if told.get(task_id, {}).get("state") not in _OVER else []
        table = {(changes.TASK, one.id): _fields(one) for one in (*found, *over)}
        with files.os_errors("cannot write the log of events"):
            self._recorder.record(table, (changes.TASK,))
        self._told = found
        return found

    # --- what only a server does ----------------------------------------------------------------

    def submit(self, swarm: Swarm, prompt: str, asked: Mapping[str, Any], agent: str) -> AgentTask:
        """Accept a task.

        Args:
            swarm: as the caller uses it.
            agent: a served agent, as its file configures it; empty: none.

        Raises:
            ComponentNotFound: there is no such agent.
            UsageProblem, TaskTaken
        """
        given: TaskOptions = {key: value for key, value in asked.items() if value is not None}  # type: ignore[assignment]
        served = None
        if agent:
            if "program" in given:
                raise UsageProblem("both an agent and a program are given", hint="give one of them")
            path = definition.files_of(self._servers).get(agent)
            if path is None:
                raise ComponentNotFound(f"there is no agents/{agent}/config.yaml")
            served = definition.read(path)
            definition.check_box(self.root, served)
        if "model" in given:
            task_options.check_model(served, given["model"])
        if served is not None:
            given = task_options.of_agent(served, given)
            swarm = self._with(swarm, served.says.sandbox.settings)
        if _world(swarm).acting is not None and not given.get("sandbox"):
            given["sandbox"] = None  # the user takes its box away, and no agent
        task = swarm.tasks.submit(prompt, **given)
        self._new |= {task.id}  # it may be over before the next look
        return task

    def _with(self, swarm: Swarm, settings: Mapping[str, object]) -> Swarm:
        """Return swarm for the same caller, with the settings of an agent's box."""
        if not settings:
            return swarm
        calls, opened = _world(swarm), Swarm.open(self.root, environ=self._environ, flags=settings)._opened  # noqa: SLF001
        world = opened.world._replace(acting=calls.acting, calling=calls.calling, environ=calls.environ)
        return Swarm(Opened(world, opened.swarm_dir, opened.start))

    def make_code(self, swarm: Swarm) -> tuple[str, int]:
        """Return a code with which a browser signs in, and how many seconds it counts.

        Raises:
            NotForAgents, NotAPerson
        """
        rights.check_person(caller.caller(_world(swarm)), "cannot let a browser in")
        return self.browsers.code(), CODE_SECONDS

    def sign_in(self, swarm: Swarm, code: str, name: str) -> tuple[Browser, str]:
        """Return a browser that shows a code, and its token.

        Raises:
            CodeRefused, NotForAgents
        """
        found = caller.caller(_world(swarm))
        if found.who is not None:
            raise rights.for_people("cannot sign in", found.who.address)
        made = self.browsers.sign_in(code, name)
        self.log.say("info", f"browser {made[0].id} was signed in")
        return made

    def revoke(self, swarm: Swarm, browser: str) -> None:
        """Sign a browser out.

        Raises:
            BrowserNotFound, NotForAgents, NotAPerson
        """
        rights.check_person(caller.caller(_world(swarm)), "cannot sign a browser out")
        self.browsers.revoke(browser)
        self.log.say("info", f"browser {browser} was signed out")

    def check_end(self, swarm: Swarm) -> None:
        """Refuse a caller that may not end the server.

        Raises:
            NotForAgents
        """
        rights.check(_world(swarm), "services.shutdown", attempt="cannot end the server")
        self.log.say("info", "a request asks for the end")


def _fields(task: AgentTask) -> dict[str, Any]:
    return {"state": str(task.shown), "agent": task.agent, "program": task.program, "place": str(task.place)}


def _world(swarm: Swarm) -> World:
    return swarm._opened.world  # noqa: SLF001  # the same library
