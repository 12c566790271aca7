"""The socket of an agent in a box: what is asked there is done outside, by a process that is the agent's by its place.

    in the box: swarm send … ──► io/swarm.sock ──► this supervisor ── starts ──► forwarded.py ── runs ──► swarm send …

Who asks is read from the kernel.  The process that serves a request is below this supervisor, and so it is this agent
for every check of swarm's, whatever the request says.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
import time

from swarm.machine import broker
from swarm.machine.run_folder.decisions import Decisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from swarm.supervisor.chores import Chore, Chores
    from swarm.supervisor.gate import Launch

#: Requests that are served at the same time; further ones wait.
_MOST = 16
_WAITING = 64
#: Requests that are served at once, and how many more each second: each is a process outside of the box.
_BURST, _PER_SECOND = 300, 5.0


class Forward:
    """The socket of one agent, until ``close``."""

    def __init__(self, launch: Launch, chores: Chores) -> None:
        self._folder = launch.forward_folder
        self._argv = launch.forward
        self._env = launch.label_env
        self._chores = chores
        self._running: list[Chore] = []
        self._listener: socket.socket | None = None
        self._left, self._at = float(_BURST), time.monotonic()
        self._log = Decisions(launch.run_dir)

    def open(self) -> None:
        """Listen; an agent without this works on, and says of each command that nobody answers."""
        import socket

        with contextlib.suppress(OSError):
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                place = f"/proc/self/fd/{folder}/{broker.NAME}"  # the name of a socket is short, its path may be long
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(place)
                listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                listener.bind(place)
            finally:
                os.close(folder)
            listener.setblocking(False)  # noqa: FBT003  # the word of the socket
            listener.listen(_WAITING)
            self._listener = listener

    def watch(self) -> tuple[int, ...]:
        """Return the descriptor that calls for a look when it can be read."""
        self._running = [one for one in self._running if one.status is None]
        hears = self._listener is not None and len(self._running) < _MOST and self._may_serve()
        return (self._listener.fileno(),) if hears and self._listener is not None else ()

    def _may_serve(self) -> bool:
        """Whether the agent did not ask for so much of late that it has to wait; nothing that waits is lost."""
        now = time.monotonic()
        self._left, self._at = min(float(_BURST), self._left + (now - self._at) * _PER_SECOND), now
        return self._left >= 1

    def look(self) -> None:
        """Have served what is asked."""
        import socket

        while self._listener is not None and len(self._running) < _MOST and self._may_serve():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                pid, uid, _ = struct.unpack("iii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                if uid != os.geteuid():
                    continue
                self._left -= 1
                if self._left < 1:
                    self._log.note("swarm", "requests", f"more than {_PER_SECOND:g} a second: they wait", allowed=False)
                words = [*self._argv, b"%d" % pid]
                chore = self._chores.start(words, self._env, seconds=math.inf, stdin=connection.fileno())
                if chore is not None:
                    self._running.append(chore)

    def close(self) -> None:
        """Listen no more."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
