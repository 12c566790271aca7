"""How an agent in a box reaches its supervisor: one request and one answer on a unix socket, a length before each.

    {"kind": "command", "argv": TEXT, "stdin": TEXT}         → {"code": N, "out": TEXT, "err": TEXT}
    {"kind": "event", "event": TEXT, "wait": TEXT}           → the same
    {"kind": "mcp", "agent": NAME}                           → {"code": N, "err": TEXT}; then JSON-RPC, both ways
    {"kind": "door"}                                         → {"code": 0}, when the agent's MCP door is open
    {"kind": "state", "state": S, "detail": D, "prompt": P}  → {"code": 0}

Bytes are texts in which each character is a byte; between words stands a NUL.
The answer comes when what was asked for is done, on the disk.
"""

from __future__ import annotations

import os
import struct

from swarm.machine import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

#: The variable with the path of the socket; in a box alone.
VARIABLE = "SWARM_SOCKET"
NAME = "swarm.sock"
LIMIT = 16 << 20
_LENGTH = struct.Struct(">I")


def path() -> str:
    """Return where the socket is; empty outside of a box."""
    return os.environ.get(VARIABLE, "")


def ask(request: dict[str, object]) -> dict[str, Any]:
    """Put a request and return the answer.

    Raises:
        OSError: nobody answers.
    """
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.connect(path())
        write(one, request)
        return read(one)


def write(one: socket.socket, record: dict[str, object]) -> None:
    """Send a record."""
    data = records.line(record)
    one.sendall(_LENGTH.pack(len(data)) + data)


def read(one: socket.socket) -> dict[str, Any]:
    """Return the next record.

    Raises:
        OSError: the other side is gone, or says something else.
    """
    (length,) = _LENGTH.unpack(_exactly(one, _LENGTH.size))
    if length > LIMIT:
        raise OSError("it is too long")
    try:
        found = records.loads(_exactly(one, length))
    except (ValueError, RecursionError) as error:
        raise OSError(f"it is no record: {error}") from None
    if not isinstance(found, dict):
        raise OSError("it is no record")
    return found


def _exactly(one: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = one.recv(min(length - len(data), 1 << 16))
        if not piece:
            raise ConnectionResetError("the other side is gone")
        data += piece
    return bytes(data)


def as_text(data: bytes) -> str:
    """Return bytes as the text that stands for them."""
    return data.decode("latin-1")


def as_bytes(text: object) -> bytes:
    """Return the bytes that a text stands for.

    Raises:
        ValueError: it stands for none.
    """
    if not isinstance(text, str):
        raise ValueError("text wanted")  # noqa: TRY004  # as of any wrong text
    return text.encode("latin-1")
