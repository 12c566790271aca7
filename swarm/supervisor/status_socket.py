"""Answer on a unix socket how the agent stands; ``machine/sockets/status_client.py`` holds the form of both messages.

The socket costs nothing while nobody asks.  A client that hangs is dropped after a second, and of many at once only
a few are heard.  A socket that cannot be made is no reason to run no agent: socket.json then says why.
"""

from __future__ import annotations

import contextlib
import os
import time

from swarm.machine import own, processes, records
from swarm.machine.run_folder import runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from swarm.supervisor.gate import Launch

#: Clients that are heard at the same time, and how long one may take to put its request.
_MOST, _PATIENCE = 8, 1.0
#: The kernel keeps so many more waiting.
_WAITING = 64
_LONGEST_REQUEST = 4096
#: So much is read, that a client with too much to say gets an answer instead of a reset connection.
_AT_ONCE = 64 << 10


class _Client:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.data = b""
        self.until = time.monotonic() + _PATIENCE


class StatusSocket:
    """The socket of one agent, until ``close``."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._path = launch.socket
        self._listener: socket.socket | None = None
        self._inode = 0
        self._clients: list[_Client] = []
        self._deaf_until = 0.0

    def open(self) -> None:
        """Make the socket and note where it is; one that an earlier supervisor left is replaced."""
        if not self._path:
            return
        try:
            self._listen()
        except Exception as error:  # noqa: BLE001  # whatever it is, the agent goes on without
            self._drop()
            why = getattr(error, "strerror", None) or error
            self._note({"path": "", "problem": f"cannot make {self._path}: {why}"})
        else:
            self._note({"path": self._path})

    def _note(self, record: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # the disk is full: then nobody asks
            runfiles.write(self._launch.run_dir, runfiles.SOCKET, {**record, "boot_id": processes.boot_id()})

    def _listen(self) -> None:
        """Bind under another name: what has the socket's own name always listens while its supervisor lives.

        All that an answer needs is loaded before, so that the first one is as quick as the others; the program has been
        started by then and waits for none of it.
        """
        import socket

        from swarm.machine.sockets import peer  # noqa: F401  # see above
        from swarm.supervisor import agent_info  # noqa: F401  # see above

        new = self._path + runfiles.NEW_SOCKET
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(0)
        self._listener.bind(new)
        os.chmod(new, 0o600)
        self._listener.listen(_WAITING)
        self._inode = os.lstat(new).st_ino
        own.rename(new, self._path)

    def descriptors(self) -> tuple[int, ...]:
        """Return what to wait for."""
        clients = [one.connection.fileno() for one in self._clients]
        hears = self._listener is not None and len(clients) < _MOST and time.monotonic() >= self._deaf_until
        return (self._listener.fileno(), *clients) if hears and self._listener is not None else tuple(clients)

    def left(self) -> float:
        """Return after how many seconds to look again at a client that says nothing."""
        now = time.monotonic()
        waits = [one.until - now for one in self._clients] + [self._deaf_until - now] * (self._deaf_until > now)
        return max(0.0, min(waits, default=60.0))

    def serve(self, ready: list[int]) -> None:
        """Hear those that can be read, and answer; whatever goes wrong ends a talk, never the agent."""
        try:
            self._serve(ready)
        except Exception:  # noqa: BLE001  # see above
            self._hang_up()

    def _serve(self, ready: list[int]) -> None:
        if self._listener is not None and self._listener.fileno() in ready:
            self._accept(self._listener)
        now = time.monotonic()
        for client in list(self._clients):
            if (client.connection.fileno() in ready and self._hear(client)) or now >= client.until:
                self._end(client)

    def _accept(self, listener: socket.socket) -> None:
        from swarm.machine.sockets import peer

        while len(self._clients) < _MOST:
            try:
                connection, _ = listener.accept()
            except BlockingIOError:  # nobody waits any more
                return
            except OSError:  # no descriptor is left: the one who waits would wake us again at once
                self._deaf_until = time.monotonic() + _PATIENCE
                return
            connection.settimeout(0)
            if peer.is_ours(connection):
                self._clients.append(_Client(connection))
            else:
                connection.close()

    def _hear(self, client: _Client) -> bool:
        """Read what a client sends, and answer a whole request; return whether it is over."""
        try:
            piece = client.connection.recv(_AT_ONCE)
        except BlockingIOError:
            return False
        except OSError:
            return True
        client.data += piece
        if piece and b"\n" not in client.data and len(client.data) < _LONGEST_REQUEST:
            return False
        if client.data:
            with contextlib.suppress(OSError):  # it has gone, or takes nothing
                client.connection.send(self._answer(client.data.partition(b"\n")[0][:_LONGEST_REQUEST]))
        return True

    def _answer(self, request: bytes) -> bytes:
        from swarm.supervisor import agent_info

        try:
            asked = records.loads(request)
        except ValueError:
            asked = None
        if not isinstance(asked, dict) or asked.get("type") != "status":
            return agent_info.refusal("BAD_REQUEST", 'a request is a line of JSON: {"schema": 1, "type": "status"}')
        try:
            return agent_info.answer(self._launch)
        except Exception as error:  # noqa: BLE001  # whatever an answer may lack, the agent's program goes on
            return agent_info.refusal("INTERNAL_ERROR", f"{type(error).__name__}: {error}"[:200])

    def _end(self, client: _Client) -> None:
        self._clients.remove(client)
        client.connection.close()

    def close(self) -> None:
        """End all talks, and take the socket away, unless a later supervisor of the agent has put its own there."""
        self._hang_up()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                if os.lstat(self._path).st_ino == self._inode:
                    os.unlink(self._path)
                    own.unlink(os.path.join(self._launch.run_dir, runfiles.SOCKET))
            self._drop()

    def _hang_up(self) -> None:
        while self._clients:
            self._clients.pop().connection.close()

    def _drop(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
