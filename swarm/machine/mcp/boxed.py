"""The door of an agent in a box: bytes from its program to its supervisor's socket, and back.

    program ── stdin, stdout ── this ══ box ══ socket ── the supervisor ── starts ── the door outside (`forward.py`)

Who asks is seen outside, by the process at the other end.  Nothing is understood here, so nothing is to be held here.
"""

from __future__ import annotations

import os
import select
from socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket

from swarm.machine import broker

_PIECE = 1 << 16
_UNREACHABLE = 75


def main(path: str, agent: str) -> int:
    """Serve until one side is gone; return the exit status."""
    with socket(AF_UNIX, SOCK_STREAM) as outside:
        try:
            outside.connect(path)
            broker.write(outside, {"kind": "mcp", "agent": agent})
            answer = broker.read(outside)
        except OSError as error:
            _say(f"error: cannot reach swarm from this box: {error}\n")
            return _UNREACHABLE
        _say(str(answer.get("err", "")))
        code = int(answer.get("code", 1))
        return code or _pump(outside)


def _pump(outside: socket) -> int:
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(outside.fileno(), select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if outside.fileno() in ready:
            piece = outside.recv(_PIECE)
            if not piece:
                return 0
            _write(piece)
        elif 0 in ready:
            piece = os.read(0, _PIECE)
            if piece:
                outside.sendall(piece)
            else:
                poll.unregister(0)
                outside.shutdown(SHUT_WR)


def _write(piece: bytes) -> None:
    while piece:
        piece = piece[os.write(1, piece) :]


def _say(text: str) -> None:
    os.write(2, text.encode("utf-8", "backslashreplace"))
