"""What the server of one agent does with the library: take its place, check its program, act for whoever calls."""

from __future__ import annotations

import os
import subprocess
from contextlib import nullcontext
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from swarm.api import task_options
from swarm.api.swarm import Swarm
from swarm.callers.errors import IdentityRefused, NotForAgents
from swarm.kit import files, redaction
from swarm.kit.errors import EnvironmentProblem, UsageProblem
from swarm.machine import identity, person, processes
from swarm.project import names
from swarm.project.errors import ExtraMissing
from swarm.project.statedir import prepare
from swarm.roles.agent_file import AgentFile, TlsFile, check_host
from swarm.services import credentials, definition, place, proof
from swarm.services.log import Log as Log  # noqa: PLC0414  # offered here
from swarm.services.log import timestamp as timestamp  # noqa: PLC0414  # offered here
from swarm.services.roots import root_of
from swarm.services.values import AGENT, ServedAgent
from swarm.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Self

    from swarm.services.certificate import Certificate
    from swarm.tasks.reported import Reported as Reported  # noqa: PLC0414  # offered here
    from swarm.tasks.requests import TaskOptions
    from swarm.tasks.values import AgentTask

_VERSION_SECONDS = 30.0


def defined(
    swarm: Swarm,
    config: str | os.PathLike[str] | None,
    name: str,
    tls: bool = False,  # noqa: FBT001, FBT002  # a switch of the command line
    **given: Any,
) -> ServedAgent:
    """Return the agent that is to be served.

    Args:
        config: its file; default: ``agents/<name>/config.yaml`` of the swarm directory, where it is there.
        tls: it speaks TLS, with a certificate that swarm makes unless the file names one.
        given: what the caller says instead of the file.

    Raises:
        ConfigProblem, InvalidName, UsageProblem
    """
    given = {key: value for key, value in given.items() if value is not None and value != ""}
    box = given.pop("sandbox", None)
    path = Path(os.path.abspath(config)) if config else None
    if path is None and name:
        path = definition.files_of(_root(swarm)).get(names.check_name("agent", name))
    if path is None and not name:
        raise UsageProblem("no agent is named", hint="swarm agent serve --name NAME --port 9000")
    if path is None:
        if "port" not in given:
            raise UsageProblem("port is required", hint=f"swarm agent serve --name {name} --port 9000")
        found = ServedAgent(name, AgentFile(given.pop("port")))
    else:
        found = definition.read(path)
    says = found.says._replace(**given)
    if box is not None:
        says = says._replace(sandbox=says.sandbox._replace(enabled=box))
    if box is not False:  # which a person has said
        definition.check_box(swarm.root, found._replace(says=says))
    if "program" in given:
        says = says._replace(command="")
    if tls and says.tls is None:
        says = says._replace(tls=TlsFile())
    try:
        check_host(says.bind)
    except ValueError as problem:
        raise UsageProblem(f"cannot listen there: {problem}", hint="for example: --bind 127.0.0.1") from None
    return found._replace(name=name or found.name, says=says)


def _root(swarm: Swarm) -> Path:
    return root_of(swarm._opened.world)  # noqa: SLF001  # the same library


def check_installed() -> None:
    """Refuse where the extra is not installed.

    Raises:
        ExtraMissing
    """
    from importlib.util import find_spec

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise ExtraMissing("serving needs the libraries `fastapi` and `uvicorn`, which are not installed with swarm")


class AgentServer:
    """The server of one agent, while this process is it.

    Attributes:
        root: its swarm directory.
        token: what requests by TCP have to name.
        otlp_token: what reports of programs have to name; it is good for nothing else.
        log: its log.
        certificate: with which it speaks TLS, once it listens.
    """

    def __init__(self, root: Path, swarm: Swarm, agent: ServedAgent) -> None:
        self.root = root
        self.agent = agent
        self.token = credentials.token(root)
        folder = root / definition.AGENTS
        for one in (folder, folder / agent.name):
            files.make_folders(one, 0o700)
        world = swarm._opened.world  # noqa: SLF001  # the same library
        self.otlp_token = credentials.token(root, credentials.OTLP)
        known = (*redaction.values_of(world.environ), *(one.decode("ascii") for one in (self.token, self.otlp_token)))
        self.log = Log(folder / agent.name / "agent.log", f"agent/{agent.name}", agent.says.log_level, known)
        self.certificate: Certificate | None = None
        self._reporting = Lock()
        self._address = ("", 0)
        self._swarm = swarm
        self._fd = -1
        self._box = ""

    @classmethod
    def of(cls, swarm: Swarm, agent: ServedAgent) -> Self:
        """Return that of an agent; nothing is taken yet.

        Raises:
            NotForAgents: an agent asks; who serves is none of them.
            LooseMode, ConfigProblem: a file with a secret is open to others, or wrong.
        """
        world = swarm._opened.world  # noqa: SLF001  # the same library
        who = identity.whoami(world.environ)
        if who is not None or person.descends_from_agent():
            raise NotForAgents(f"cannot serve agent {agent.name}: this is for people, and you are an agent")
        root = root_of(world, make=True)
        with files.os_errors(f"cannot serve agent {agent.name}"):
            environ = credentials.environment(root, world.environ)
            place_of = swarm.root if root == world.layout.state else root
            opened = Swarm.open(place_of, environ=environ, flags=agent.says.sandbox.settings)
            state = opened._opened.world.layout.state  # noqa: SLF001  # the same library
            if not (state.is_dir() and os.path.samefile(state, root)):
                prepare(opened._opened.world)  # noqa: SLF001  # the same library
            if not os.path.samefile(state, root):
                raise UsageProblem(
                    f"cannot serve agent {agent.name}: {root} lies in the repository {opened.root}, which has its own",
                    hint="name a folder outside of it, or none",
                )
            credentials.check(root)
            return cls(root, opened, agent)

    @property
    def socket(self) -> tuple[Path, str]:
        """The folder and the name of the socket."""
        return place.folder_of(self.root, AGENT, self.agent.name), place.SOCKET

    def __enter__(self) -> Self:
        self._fd = place.take(self.root, AGENT, self.agent.name)
        return self

    def __exit__(self, *_problem: object) -> None:
        place.leave(self.root, AGENT, self.agent.name)
        os.close(self._fd)

    def write(self, address: tuple[str, int]) -> None:
        """Write down that this process serves, and at which address."""
        is_secured = self.certificate is not None
        self._address = address
        place.write(self.root, AGENT, self.agent.name, address, is_secured=is_secured)

    @property
    def is_secured(self) -> bool:
        """Whether TLS is spoken."""
        return self.agent.says.tls is not None

    def certify(self, host: str) -> Certificate | None:
        """Return the certificate of this server, which listens at an address; None: it speaks without TLS.

        Raises:
            ConfigProblem, LooseMode, ExtraMissing
        """
        from swarm.services import certificate

        if self.agent.says.tls is not None:
            who = f"{AGENT}-{self.agent.name}"
            self.certificate = certificate.prepare(self.root, who, self.agent.says.tls, host)
        return self.certificate

    def proof(self, nonce: str, host: str, port: int) -> str:
        """Return what shows that this server belongs to its swarm directory; see ``services/proof.py``."""
        fingerprint = self.certificate.fingerprint if self.certificate is not None else ""
        return proof.prove(self.token, nonce, host, port, fingerprint)

    def announced(self) -> AbstractContextManager[None]:
        """Announce this server as long as this lasts, if the setting ``discovery.method`` is ``mdns``.

        Raises:
            ExtraMissing
            OSError: there is no network to do it on.
        """
        from swarm.services import announcing, certificate

        if self._swarm._opened.world.settings.discovery.method != "mdns":  # noqa: SLF001  # the same library
            return nullcontext()
        host, port = self._address
        return announcing.announced(AGENT, self.agent.name, __version__, certificate.addresses(host), port)

    # --- its program ----------------------------------------------------------------------------

    def check(self) -> str:
        """Find out whether the agent can do tasks; return the version of its program, as far as that tells it.

        Raises:
            SwarmError: it cannot.
        """
        from swarm.programs import registry
        from swarm.tasks import requests

        says = self.agent.says
        asks = not says.command and registry.program(says.program).tells_version
        version = self._version(says.program) if asks else ""
        bench = self._swarm.tasks._bench()  # noqa: SLF001  # the same library
        planned = requests.plan(bench, "check", self._options({}), ("", ""))
        self._box = planned.box.by if planned.box is not None else "none"
        return version

    def _version(self, program: str) -> str:
        from swarm.programs import registry

        environ = self._swarm._opened.world.environ  # noqa: SLF001  # the same library
        executable = registry.find(program, (), environ)
        try:
            done = subprocess.run(
                [executable, "--version"],
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_VERSION_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise EnvironmentProblem(f"{executable} --version does not answer: {type(problem).__name__}") from problem
        if done.returncode != 0:
            raise EnvironmentProblem(f"{executable} --version failed with exit status {done.returncode}")
        return done.stdout.decode("utf-8", "replace").strip()[:200]

    def _options(self, asked: Mapping[str, Any]) -> TaskOptions:
        return {**task_options.of_agent(self.agent, asked), "alone": True}

    # --- its configuration and its end ----------------------------------------------------------

    def refuse_agents(self, caller: Swarm, doing: str) -> None:
        """Refuse what is for people and their programs.

        Raises:
            NotForAgents
        """
        from swarm.callers import rights

        world = caller._opened.world  # noqa: SLF001  # the same library
        rights.check(world, "services.shutdown", attempt=f"cannot {doing} agent {self.agent.name}")

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change what the agent's file says, for this process; running tasks go on as they began.

        Raises:
            UsageProblem: its program has no such model; nothing was changed.
        """
        if changes.get("model"):
            self.check_model(changes["model"])
        self.agent = self.agent._replace(says=self.agent.says._replace(**changes))
        self.log.set_level(self.agent.says.log_level)
        self.log.say("info", f"configuration changed: {', '.join(sorted(changes))}")

    # --- its tasks ------------------------------------------------------------------------------

    def check_model(self, model: str) -> None:
        """Refuse a model that the agent's program cannot have.

        Raises:
            UsageProblem
        """
        task_options.check_model(self.agent, model)

    def for_caller(self, pids: Sequence[int] | None) -> Swarm:
        """Return swarm as the caller uses it: an agent that calls is that agent, whichever door it takes.

        Args:
            pids: the processes at the other end; None where the machine cannot tell, and the token decides.

        Raises:
            NotForAgents, IdentityRefused
        """
        if pids is None:
            return self._swarm
        if not pids:
            raise IdentityRefused("cannot act: the request came from a process that cannot be seen", hint="")
        state = os.fspath(self.root)
        for pid in pids:
            if identity.whoami({}, pid, state) is not None:
                return self._swarm.tree.acting_for(pid)
        if any(person.is_below_agent(pid) for pid in pids):
            raise NotForAgents("cannot act: the request came from a program that an agent or a task started", hint="")
        return self._swarm

    def submit(self, caller: Swarm, prompt: str, asked: Mapping[str, Any]) -> AgentTask:
        """Give the agent a task.

        Raises:
            UsageProblem, TaskBusy, TaskTaken
        """
        from swarm.tasks import requests

        how = self._options(asked)
        if caller is not self._swarm and not how.get("sandbox"):
            how["sandbox"] = None  # the user takes its box away, and no agent
        if self.agent.says.telemetry and not self.is_secured and self._box.startswith("no"):
            how["task_id"] = how.get("task_id") or requests.new_task_id()
            how["env"] = {**self._telemetry(how["task_id"]), **(how.get("env") or {})}
        return caller.tasks.submit(prompt, **how)

    def _telemetry(self, task_id: str) -> dict[str, str]:
        """Return the variables with which the program of a task reports of itself here."""
        from swarm.tasks import reported

        says, name = self.agent.says, self.agent.name
        program = "" if says.command else says.program
        return reported.variables(program, self._address[1], self.otlp_token.decode("ascii"), task_id, name)

    def report(self, kind: str, body: Mapping[str, Any]) -> int:
        """Take what programs of tasks report of themselves; return how many tasks it is about.

        Args:
            kind: ``logs``, ``metrics`` or ``traces``; of the last nothing is kept.

        Raises:
            UsageProblem: it is no report.
        """
        from swarm.tasks import reported
        from swarm.tasks.errors import TaskNotFound

        takers = {"logs": reported.of_logs, "metrics": reported.of_metrics}
        try:
            found = takers[kind](body) if kind in takers else {}
        except (ValueError, OverflowError) as problem:
            raise UsageProblem(f"cannot take the report: {problem}", hint="") from None
        store, taken = self._swarm.tasks._bench().store, 0  # noqa: SLF001  # the same library
        for task_id, sums in found.items():
            try:
                self.task(task_id)
            except (TaskNotFound, UsageProblem):
                continue  # not a task of this agent's, or gone from the history
            with self._reporting, files.os_errors("cannot keep the report"):
                reported.add(store, task_id, sums)
            taken += 1
        return taken

    def reported(self, task_id: str) -> Reported | None:
        """Return what the program of a task reported; None: nothing."""
        from swarm.tasks import reported

        return reported.read(self._swarm.tasks._bench().store, task_id)  # noqa: SLF001  # the same library

    @property
    def box(self) -> str:
        """How the program is boxed: by which program, ``noop`` with the reason why not, or ``none``."""
        return self._box

    def task(self, task_id: str) -> AgentTask:
        """Return a task of this agent.

        Raises:
            TaskNotFound, UsageProblem
        """
        from swarm.tasks.errors import TaskNotFound

        found = self._swarm.tasks.get(task_id)
        if found.agent != self.agent.name:
            raise TaskNotFound(f"there is no task {task_id}")
        return found

    def unfinished(self) -> tuple[AgentTask, ...]:
        """Return the agent's tasks that are not over; what is over is settled, and what is due is started."""
        return self._swarm.tasks.list(agent=self.agent.name)

    def finished(self) -> tuple[AgentTask, ...]:
        """Return the agent's finished tasks, newest first."""
        found = self._swarm.tasks.list(finished=True, agent=self.agent.name)
        return tuple(
            sorted((one for one in found if one.is_over), key=lambda one: (one.ended_ms, one.id), reverse=True)
        )

    @property
    def tasks(self) -> Any:
        """The tasks of the swarm directory, as this process uses them."""
        return self._swarm.tasks


def is_nonce(text: bytes) -> bool:
    """Whether a text may be the number that a proof is made of."""
    return proof.is_nonce(text.decode("ascii", "replace"))


def connected(port: int, server_port: int, hosts: tuple[str, str]) -> list[int] | None:
    """Return the processes that hold the client's end of a connection on this machine; None where that is not seen.

    Args:
        hosts: the addresses of the client and of the server, as numbers.
    """
    from swarm.machine.sockets import connections

    return connections.holders(port, server_port, hosts) if processes.HAS_PROC else None


def is_ours(port: int, server_port: int, hosts: tuple[str, str]) -> bool:
    """Whether a program of this user holds the client's end of a connection on this machine, as far as that is seen."""
    from swarm.machine.sockets import connections

    return processes.HAS_PROC and connections.user(port, server_port, hosts) == os.geteuid()
