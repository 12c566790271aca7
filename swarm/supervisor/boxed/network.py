"""The network of a box: keep what listens there, and start the process that serves it when somebody connects.

The listening descriptors come from the box's helper (``boxed/enter.py``) and stay here.  So a connection waits while
the proxy starts, or starts again after a crash; an agent that says nothing costs no process; and the proxy needs no
watch over who uses it: it ends with the supervisor, or by itself when nobody was connected for a while.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time

from swarm.machine.inbox_watch import SCAN_EVERY
from swarm.machine.run_folder.decisions import Decisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from swarm.supervisor.chores import Chore, Chores
    from swarm.supervisor.gate import Launch

#: Seconds between two starts of the proxy.
_AGAIN = 1.0
#: The variable by which `boxed/enter.py` finds our socket.
_VARIABLE = b"SWARM_NETWORK_FD"
_MOST_FDS, _LONGEST = 8, 300


class Network:
    """The network of one agent's box; of one without a box, or without a network, it does nothing."""

    def __init__(self, launch: Launch, chores: Chores) -> None:
        self._argv = launch.network_argv
        self._spec = launch.network
        self._env = launch.label_env
        self._log = Decisions(launch.run_dir)
        self._chores = chores
        self._chore: Chore | None = None
        self._listening: list[int] = []
        self._next = 0.0
        self._mine: socket.socket | None = None
        self._theirs: socket.socket | None = None
        if self._argv:
            import socket

            self._mine, self._theirs = socket.socketpair()
            self._mine.setblocking(False)  # noqa: FBT003  # the word of the socket

    def hand_over(self) -> dict[bytes, bytes]:
        """In the child that becomes the program: let it keep its end of our socket, and return what tells it so."""
        if self._theirs is None:
            return {}
        self._theirs.set_inheritable(True)
        return {_VARIABLE: b"%d" % self._theirs.fileno()}

    def begun(self) -> None:
        """Close the program's end: it has it now."""
        if self._theirs is not None:
            self._theirs.close()
            self._theirs = None

    def watch(self) -> tuple[int, ...]:
        """Return the descriptors that call for a look when they can be read."""
        if self._mine is not None:
            return (self._mine.fileno(),)
        if self._chore is not None or time.monotonic() < self._next:
            return ()
        return tuple(self._listening)

    def look(self) -> float:
        """Take what listens, and see that it is served; return after how many seconds to look again."""
        if self._mine is not None:
            self._take(self._mine)
        if self._chore is not None and self._chore.status is not None:
            if self._chore.status:
                self._log.note("proxy", "", f"the proxy ended with status {self._chore.status}", allowed=False)
            self._chore = None
        left = self._next - time.monotonic()
        if self._chore is None and left <= 0 and self._is_wanted():
            self._next = time.monotonic() + _AGAIN
            self._start()
        return max(0.05, min(SCAN_EVERY, left)) if left > 0 else SCAN_EVERY

    def _take(self, mine: socket.socket) -> None:
        import socket

        try:
            said, fds, _, _ = socket.recv_fds(mine, _LONGEST, _MOST_FDS)
        except BlockingIOError:
            return
        except OSError as error:
            said, fds = str(error).encode(), []
        for fd in fds:
            os.set_inheritable(fd, False)  # noqa: FBT003
        self._listening = fds
        if not fds:
            words = said.decode("utf-8", "replace") or "the program ended before it began"
            self._log.note("proxy", "", f"the box has no network: {words}", allowed=False)
        mine.close()
        self._mine = None

    def _is_wanted(self) -> bool:
        import select

        return bool(self._listening and select.select(self._listening, [], [], 0)[0])

    def _start(self) -> None:
        """Start the proxy. What it may do, and the credentials, are in no command line and no file."""
        fd = os.memfd_create("network", os.MFD_CLOEXEC)
        with contextlib.closing(os.fdopen(fd, "wb")) as given:
            given.write(json.dumps({**self._spec, "parent": os.getpid()}).encode("ascii"))
            given.flush()
            given.seek(0)
            words = [*self._argv, *(b"%d" % one for one in self._listening)]
            self._chore = self._chores.start(words, self._env, seconds=math.inf, stdin=fd, fds=self._listening)
