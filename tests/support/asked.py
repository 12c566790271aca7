"""A server by HTTP, as a process, and a client that says exactly what a test wants said."""

from __future__ import annotations

import http.client
import json
import signal
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

    from swarm.testing.panes import PaneLab

TIMEOUT = 60.0


class Asked:
    """A server of a laboratory."""

    def __init__(self, lab: PaneLab) -> None:
        self.lab = lab
        self.root = lab.root / ".swarm"
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.said = b""

    @property
    def token(self) -> str:
        return (self.root / "credentials/api-token").read_text().strip()

    def private(self) -> socket.socket:
        """Connect to its socket."""
        raise NotImplementedError

    def end(self, signum: int = signal.SIGTERM) -> int:
        """End its server; return the exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signum)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end of its server; return the exit status."""
        assert self.process is not None
        self.said += self.process.communicate(timeout=60)[1]
        code, self.process = self.process.returncode, None
        return code

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = "", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Make a request with the right token; return status and answer."""
        sent = {"Authorization": f"Bearer {token or self.token}"} if token is not None else {}
        data = None if body is None else json.dumps(body)
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            one.request(method, path, data, sent)
            answer = one.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            one.close()

    def status(self) -> dict[str, Any]:
        return self.ask("GET", "/status", token=None)[1]

    def raw(self, data: bytes, *, private: bool = False, timeout: float = TIMEOUT) -> bytes:
        """Send bytes; return all that comes until the connection ends, or says nothing more."""
        one = self.private() if private else socket.create_connection(("127.0.0.1", self.port))
        one.settimeout(timeout)
        said = b""
        try:
            one.sendall(data)
            while piece := one.recv(1 << 16):
                said += piece
        except (ConnectionError, TimeoutError):
            pass
        finally:
            one.close()
        return said
