"""Call a component by HTTP, with the standard library alone."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit.errors import UsageProblem
from swarm.services import proof
from swarm.services.errors import ServiceProblem
from swarm.services.place import SOCKET

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST = 16 << 20
_LONGEST_PATH = 100
_URL = re.compile(
    r"(?:http://(127\.0\.0\.1|localhost)|https://([A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)):([0-9]{1,5})/?",
    re.ASCII,
)


class ServiceReply(NamedTuple):
    """What a component answers."""

    status: int
    said: dict[str, Any]

    @property
    def is_good(self) -> bool:
        """Whether it did what was asked."""
        return 200 <= self.status < 300

    @property
    def words(self) -> str:
        """What it says, for people."""
        return str(self.said.get("message") or self.said.get("error") or f"HTTP status {self.status}")


class Private(http.client.HTTPConnection):
    """HTTP by the socket in a component's folder: only this user's programs can be there."""

    def __init__(self, folder: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._folder = folder

    def connect(self) -> None:
        """Connect; a path that is too long for the kernel is shortened by the descriptor of the folder."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.settimeout(self.timeout)
        path = os.fspath(self._folder / SOCKET)
        folder = -1
        try:
            if len(os.fsencode(path)) > _LONGEST_PATH:
                folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                path = f"/proc/self/fd/{folder}/{SOCKET}"
            made.connect(path)
        except OSError:
            made.close()
            raise
        finally:
            if folder >= 0:
                os.close(folder)
        self.sock = made


class Address(NamedTuple):
    """Where a component is asked."""

    host: str
    port: int
    is_secured: bool

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return self.host in ("127.0.0.1", "localhost")

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection; who is at its other end is for ``check_server`` to say."""
        if not self.is_secured:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=proof.unchecked())


def address_of(url: str) -> Address:
    """Return the address that a URL names.

    Raises:
        UsageProblem: it is none of this machine, and without TLS.
    """
    found = _URL.fullmatch(url)
    if found is None or not 0 < int(found[3]) <= 65_535:
        raise UsageProblem(
            f"{ascii(url)[:80]} is no address of an agent", hint="such as http://127.0.0.1:9000 or https://build:9000"
        )
    return Address(found[1] or found[2], int(found[3]), found[1] is None)


def check_server(connection: http.client.HTTPConnection, token: bytes) -> None:
    """Have a server show that it knows the token; from then on the connection leads to that server and to no other.

    Raises:
        ServiceProblem: it does not.
    """
    nonce = proof.new_nonce()
    said = _exchange(connection, "GET", "/status", None, {proof.HEADER: nonce}).said
    connection.auto_open = 0
    if connection.sock is not None:
        host, port = connection.sock.getpeername()[:2]
        fingerprint = proof.fingerprint_of(connection.sock)
        if proof.fits(said.get("proof"), token, nonce, host, port, fingerprint):
            return
    connection.close()
    raise ServiceProblem(
        "the server does not show that the token is its own, so it was not sent",
        hint="set SWARM_API_TOKEN to what credentials/api-token of its swarm directory holds",
    )


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: object = None, *, token: bytes = b""
) -> ServiceReply:
    """Make one request, and return the answer.

    Raises:
        ServiceProblem: there is none, or it is no component's.
    """
    headers = {"Authorization": f"Bearer {token.decode('ascii')}"} if token else {}
    with contextlib.closing(connection):
        return _exchange(connection, method, path, body, headers)


def _exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: object, headers: dict[str, str]
) -> ServiceReply:
    headers = {"Accept": "application/json", **headers}
    data = None
    if body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode("ascii"), "application/json"
    try:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        said = json.loads(answer.read(_LARGEST))
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as problem:
        why = problem.strerror if isinstance(problem, OSError) and problem.strerror else type(problem).__name__
        raise ServiceProblem(f"the server does not answer as a component does: {why}") from None
    if not isinstance(said, dict):
        raise ServiceProblem("the server does not answer as a component does: it sent no JSON object")
    return ServiceReply(answer.status, said)
