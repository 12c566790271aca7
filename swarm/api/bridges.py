"""The namespace ``swarm.bridges``: gateways between the user's inbox and programs of the user's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.approvals.values import Answer
    from swarm.bridges.definition import Definition
    from swarm.bridges.place import BridgeStatus
    from swarm.kit.errors import SwarmError

#: Seconds until a supervisor has its lock, or is gone.
_PATIENCE, _LOOK_EVERY = 20.0, 0.05


class Bridges(Door):
    """The bridges of the user, as they are for this repository. Call it for all of them."""

    def __call__(self, *, problems: list[SwarmError] | None = None) -> tuple[BridgeStatus, ...]:
        """Return every defined bridge with its state. Never writes, never waits.

        Args:
            problems: the errors of definitions that cannot be used are added here; they hinder no other.
        """
        from swarm.bridges import place
        from swarm.kit.errors import SwarmError

        found = []
        with files.os_errors("cannot read the bridges"):
            for name, path in place.defined(self._places()).items():
                from swarm.bridges import definition  # most users have none

                try:
                    may = definition.read(path).may
                except SwarmError as problem:
                    found.append(place.BridgeStatus(name, place.REFUSED, problem.message))
                    if problems is not None:
                        problems.append(problem)
                else:
                    found.append(place.read(self._world.layout.state, name, may))
        return tuple(found)

    def init(self, name: str, *, kind: str = "desktop") -> Path:
        """Write a new file that defines a bridge into the user's swarm directory, and return it; overwrite nothing.

        Args:
            kind: ``desktop``, ``webhook`` or ``command``.

        Raises:
            BridgeExists, InvalidName, NotForAgents
        """
        from swarm.bridges import init
        from swarm.callers import rights

        rights.check(self._world, "bridges.init", attempt=f"cannot write bridge {name[:40]}")
        with files.os_errors(f"cannot write bridge {name[:40]}"):
            return init.write(name, kind, self._places())

    def start(self, name: str) -> BridgeStatus:
        """Start a bridge in the background; it goes on until it is stopped or the machine ends.

        Raises:
            BridgeNotFound, BridgeRuns, ConfigProblem, NotForAgents
        """
        from swarm.bridges import place
        from swarm.bridges.errors import BridgeRuns
        from swarm.kit.errors import EnvironmentProblem

        self._checked(name, "start")
        folder = place.folder_of(self._world.layout.state, name)
        if place.is_taken(folder):
            raise BridgeRuns(f"bridge {name} runs already", hint=f"swarm bridge stop {name}")
        argv = [sys.executable, "-P", "-m", "swarm", "-C", str(self._root), "--json", "bridge", "run", name]
        nothing = subprocess.DEVNULL
        with files.os_errors(f"cannot start bridge {name}"):
            made = subprocess.Popen(
                argv, env=self._world.environ, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
            )
        ended = threading.Event()  # somebody has to wait for it, or it would stay in the process table

        def await_end() -> None:
            made.wait()
            ended.set()

        threading.Thread(target=await_end, daemon=True).start()
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and not ended.is_set():
            now = place.read(self._world.layout.state, name)
            if now.pid == made.pid:
                return now
            time.sleep(_LOOK_EVERY)
        raise EnvironmentProblem(f"cannot start bridge {name}: its supervisor ended", hint=f"swarm bridge run {name}")

    def run(self, name: str) -> None:
        """Serve a bridge in this process, until SIGTERM or SIGINT.

        Raises:
            BridgeNotFound, BridgeRuns, ConfigProblem, NotForAgents
        """
        from swarm.bridges.gateway import Gateway
        from swarm.project.statedir import prepare

        definition = self._checked(name, "run")
        with files.os_errors(f"cannot run bridge {name}"):
            prepare(self._world)
            state = self._world.layout.state
            gateway = Gateway(definition, state, self._post, self._world.environ, self._answer())
            _until_signal(gateway.stop, gateway.run)

    def stop(self, name: str) -> BridgeStatus:
        """Stop a bridge and its command; what comes meanwhile waits in the user's inbox.

        Raises:
            BridgeNotFound, NotForAgents
        """
        from swarm.bridges import place
        from swarm.kit.errors import EnvironmentProblem

        self._checked(name, "stop")
        state = self._world.layout.state
        folder, now = place.folder_of(state, name), place.read(state, name)
        if now.pid:
            with files.os_errors(f"cannot stop bridge {name}"):
                os.kill(now.pid, signal.SIGTERM)
        until = time.monotonic() + _PATIENCE
        while place.is_taken(folder):
            if time.monotonic() > until:
                raise EnvironmentProblem(f"cannot stop bridge {name}: its supervisor {now.pid} goes on")
            time.sleep(_LOOK_EVERY)
        return place.read(state, name)

    def _checked(self, name: str, verb: str) -> Definition:
        """Return the definition; refuse an agent."""
        from swarm.bridges import definition
        from swarm.callers import rights

        rights.check(self._world, f"bridges.{verb}", attempt=f"cannot {verb} bridge {name[:40]}")
        with files.os_errors(f"cannot read bridge {name[:40]}"):
            return definition.find(name, self._places())

    def _places(self) -> tuple[Path, ...]:
        from swarm.bridges import place

        return place.folders(self._root, self._world.environ, self._world.swarm_dir)

    def _answer(self) -> Callable[[str, Answer], object]:
        """Return what answers requests for a bridge whose right and code were checked."""
        from swarm.api.approvals import Approvals

        return Approvals(self._opened)._answered  # noqa: SLF001  # the same namespace's words for a program


def _until_signal(stop: Callable[[], None], act: Callable[[], None]) -> None:
    """Run something that ends when it is asked to; the process's own handlers come back after."""

    def asked(_number: int, _frame: object) -> None:
        stop()

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        act()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
