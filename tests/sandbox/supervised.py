"""The part of a supervisor that sees to the network of a box, without the rest of it."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Self

from swarm.supervisor.boxed import network
from swarm.supervisor.boxed.enter import NETWORK_FD
from swarm.supervisor.chores import Chores

if TYPE_CHECKING:
    from pathlib import Path

PORTS = (3128, 3129)
SERVE = [os.fsencode(word) for word in (sys.executable, "-P", "-m", "swarm.sandbox.network.serve")]


class Launch:
    """What of a launch the network needs."""

    def __init__(self, run_dir: Path) -> None:
        services = [{"name": "m", "upstream": "http://127.0.0.1:1", "allowed": ["GET /x"], "headers": {}}]
        self.network_argv = SERVE
        self.network: dict[str, object] = {"run_dir": str(run_dir), "network": "model", "hosts": [], "private": []}
        self.network |= {"services": services, "denied": []}
        self.label_env = {b"PATH": os.environb[b"PATH"]}
        self.run_dir = str(run_dir)


class Network:
    """It, looked after in a thread.

    Attributes:
        env: what the program gets that enters the box.
        fd: its end of the socket.
    """

    def __init__(self, run_dir: Path) -> None:
        self.chores = Chores()
        self.looked = network.Network(Launch(run_dir), self.chores)  # type: ignore[arg-type]  # what it needs of it
        self.env = {os.fsdecode(name): os.fsdecode(value) for name, value in self.looked.hand_over().items()}
        self.fd = int(self.env[NETWORK_FD])
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.looked.look()
            for pid in list(self.chores._running):
                found, how = os.waitpid(pid, os.WNOHANG)
                if found:
                    self.chores.reaped(pid, how)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for chore in self.chores._running.values():
            chore.kill()
            os.waitpid(chore.pid, 0)
            chore.end(0)
        for fd in self.looked._listening:
            os.close(fd)
        if self.looked._mine is not None:
            self.looked._mine.close()
        self.looked.begun()
