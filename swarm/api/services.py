"""The namespace ``swarm.services``: the servers of a swarm directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.api.finding import Finding
from swarm.kit import files
from swarm.kit.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.kit.errors import SwarmError
    from swarm.services.calling import ServiceReply
    from swarm.services.values import Component, ComponentEnded, Record, UnitFile

#: Beyond the time that a task may go on.
_MARGIN = 15.0
#: From the start of a server until it takes tasks: its program may take its time to tell its version.
_PATIENCE, _LOOK_EVERY = 60.0, 0.05


class Services(Finding):
    """The servers of a swarm directory, called components. Call it for all that are configured or run.

    Servers are found by what they wrote down in the directory, and asked by the socket there: nothing else on this
    machine can take their place.
    """

    def __call__(self) -> tuple[Component, ...]:
        """Return every component that a file configures or that runs, by name."""
        from swarm.services import definition
        from swarm.services.values import AGENT, STOPPED, Component

        with files.os_errors("cannot list the components"):
            found = {one.name: one for one in self.discover()}
            for name, path in definition.files_of(self._services_root()).items():
                problems = definition.problems_of(path)
                trouble = problems[0].message if problems else ""
                there = found.get(name) or Component(AGENT, name, STOPPED)
                found[name] = there._replace(trouble=trouble)
        return tuple(found[name] for name in sorted(found))

    def start(self, name: str) -> Component:
        """Start the server of a configured agent in the background; it goes on until it is shut down.

        Raises:
            ComponentNotFound, ComponentRuns, ConfigProblem, EnvironmentProblem, NotForAgents
        """
        import subprocess
        import sys
        import tempfile
        import time

        from swarm.kit.errors import EnvironmentProblem
        from swarm.services import definition, place
        from swarm.services.errors import ComponentNotFound, ComponentRuns
        from swarm.services.values import AGENT

        self._check("start")
        root = self._services_root()
        path = definition.files_of(root).get(name)
        if path is None:
            raise ComponentNotFound(f"cannot start {name[:40]}: there is no agents/{name[:40]}/config.yaml")
        definition.read(path)
        now = place.find(root, AGENT, name)
        if now is not None:
            raise ComponentRuns(f"cannot start agent {name}: process {now.pid} serves it, on {now.url}")
        argv = [sys.executable, "-P", "-m", "swarm", "-C", str(self._opened.start), "agent", "serve", "--name", name]
        with files.os_errors(f"cannot start agent {name}"), tempfile.TemporaryFile() as said:
            made = subprocess.Popen(
                argv,
                env=self._world.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            until = time.monotonic() + _PATIENCE
            while time.monotonic() < until and made.poll() is None:
                ready = [one for one in self.discover() if one.pid == made.pid and one.state not in _NOT_READY]
                if ready:
                    return ready[0]
                time.sleep(_LOOK_EVERY)
            made.poll()
            said.seek(0)
            words = said.read(2000).decode("utf-8", "replace").strip()
        why = f"it ended with exit status {made.returncode}" if made.returncode is not None else "it is starting still"
        raise EnvironmentProblem(
            f"cannot start agent {name}: {why}", details=words, hint=f"swarm agent serve --name {name}"
        )

    def shutdown(
        self, *, kind: str | None = None, port: int | None = None, timeout: int = 30, force: bool = False
    ) -> tuple[ComponentEnded, ...]:
        """Ask components to end, and wait until they have; a task that runs may go on so long, then it is cancelled.

        Args:
            kind: only those of this type.
            port: only the one on this port.
            timeout: seconds.
            force: running tasks are cancelled at once.

        Raises:
            ComponentNotFound: none of these runs.
            NotForAgents
        """
        from swarm.services import ending

        self._check("shutdown")
        root = self._services_root()
        with files.os_errors("cannot shut down"):
            chosen = self._chosen(kind, port)
            asked = [(one, ending.shut_down(root, one, timeout, force=force)) for one in chosen]
            found = []
            for record, answer in asked:
                over = answer.done and ending.await_end(root, record, (0 if force else timeout) + _MARGIN)
                late = answer._replace(done=False, words=f"process {record.pid} goes on")
                found.append(answer._replace(words="ended") if over else late if answer.done else answer)
        return tuple(found)

    def kill(self, *, kind: str | None = None, port: int | None = None) -> tuple[ComponentEnded, ...]:
        """End the processes of components: SIGTERM, after five seconds SIGKILL. Their tasks go on.

        Raises:
            ComponentNotFound, NotForAgents
        """
        from swarm.services import ending

        self._check("kill")
        with files.os_errors("cannot kill"):
            return tuple(ending.kill(record) for record in self._chosen(kind, port))

    def write_unit(self, name: str = "", *, platform: str = "") -> UnitFile:
        """Write the file by which systemd or launchd starts a server for this user; its tasks and agents outlive it.

        Args:
            name: of a configured agent; empty: the server of this repository (``swarm serve``).
            platform: ``linux`` for systemd, ``darwin`` for launchd; default: this machine's.

        Raises:
            ComponentNotFound: no file configures such an agent.
            ConfigProblem, UsageProblem, NotForAgents
        """
        import sys

        from swarm.services import definition, units
        from swarm.services.errors import ComponentNotFound

        self._check("write_unit", "write unit files for")
        start = self._opened.start
        argv = [sys.executable, "-P", "-m", "swarm", "-C", str(start)]
        with files.os_errors("cannot write the unit file"):
            if not name:
                what, words = "project", ["serve"]
            else:
                path = definition.files_of(self._services_root()).get(name)
                if path is None:
                    raise ComponentNotFound(f"cannot write a unit file: there is no agents/{name[:40]}/config.yaml")
                definition.read(path)
                what, words = f"agent-{name}", ["agent", "serve", "--name", name]
            return units.write(what, [*argv, *words], start, self._world.environ, platform or sys.platform)

    @staticmethod
    def check_file(path: str | os.PathLike[str]) -> dict[str, list[SwarmError]]:
        """Check a file of a served agent; return its path with the problems."""
        from swarm.services import definition

        with files.os_errors(f"cannot check {path}"):
            return {str(path): definition.problems_of(Path(os.path.abspath(path)))}

    def validate(self) -> dict[str, list[SwarmError]]:
        """Check the files of all served agents of the swarm directory; return the problems of each."""
        from swarm.services import definition

        with files.os_errors("cannot check the files of agents"):
            found = definition.files_of(self._services_root()).values()
            return {str(one): definition.problems_of(one) for one in found}

    def ask(self, url: str, method: str, path: str, body: object = None, *, timeout: float = 60.0) -> ServiceReply:
        """Make a request to an agent's server, and return the answer.

        The servers of this swarm directory are asked by their sockets. Another gets the request and the token of
        ``SWARM_API_TOKEN`` once it has shown that this token is its own.

        Raises:
            UsageProblem: the address is none of this machine, and without TLS; or there is no token for it.
            ServiceProblem: nobody answers there as a component does, or the token is not that server's.
        """
        from swarm.services import calling, place

        address = calling.address_of(url)
        root = self._services_root()
        for one in place.everything(root):
            if (one.port == address.port and address.is_local) or one.url == url.rstrip("/"):
                connection = calling.Private(place.folder_of(root, one.type, one.name), timeout)
                return calling.ask(connection, method, path, body)
        token = self._world.environ.get("SWARM_API_TOKEN", "").encode("ascii", "ignore")
        if not token:
            raise UsageProblem(
                f"the server at {url} is none of this swarm directory, and there is no token for it",
                hint="set SWARM_API_TOKEN to what credentials/api-token of its swarm directory holds",
            )
        secured = address.connect(timeout)
        calling.check_server(secured, token)
        return calling.ask(secured, method, path, body, token=token)

    def variable(self, name: str) -> str:
        """Return a variable as servers have it: of the environment, else of the directory's file ``.env``.

        Raises:
            LooseMode, ConfigProblem
        """
        from swarm.services import credentials

        with files.os_errors(f"cannot read {name}"):
            return credentials.environment(self._services_root(), self._world.environ).get(name, "")

    # --- what the verbs share -------------------------------------------------------------------

    def _check(self, verb: str, doing: str = "") -> None:
        from swarm.callers import rights

        rights.check(self._world, f"services.{verb}", attempt=f"cannot {doing or verb} components")

    def _chosen(self, kind: str | None, port: int | None) -> Sequence[Record]:
        from swarm.services import place
        from swarm.services.errors import ComponentNotFound

        found = [
            one
            for one in place.everything(self._services_root())
            if kind in (None, one.type) and port in (None, one.port)
        ]
        if port is not None and not found:
            raise ComponentNotFound(f"no component of this swarm directory listens on port {port}")
        return found


_NOT_READY = ("starting", "not answering")
