"""Which processes hold one end of a TCP connection on this machine (Linux)."""

from __future__ import annotations

import os

from swarm.machine import processes

_LOOPBACK = b"0100007F"
_ESTABLISHED = b"01"
#: Columns of /proc/net/tcp.
_LOCAL, _REMOTE, _STATE, _USER, _INODE = 1, 2, 3, 7, 9


def holders(port: int, other: int) -> list[int]:
    """Return the processes with a descriptor of the end at 127.0.0.1:*port* of the connection with *other*."""
    line = _line(port, other)
    return [] if not line else [pid for pid in _pids() if _holds(pid, b"socket:[" + line[_INODE] + b"]")]


def user(port: int, other: int) -> int | None:
    """Return the user whose program holds the end at 127.0.0.1:*port* of the connection with *other*."""
    line = _line(port, other)
    return int(line[_USER]) if line else None


def _line(port: int, other: int) -> list[bytes]:
    wanted = [b"%s:%04X" % (_LOOPBACK, one) for one in (port, other)]
    for line in processes.read("/proc/net/tcp").splitlines()[1:]:
        words = line.split()
        if words[_LOCAL : _REMOTE + 1] == wanted and words[_STATE] == _ESTABLISHED:
            return words
    return []


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _holds(pid: int, link: bytes) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        return any(_link(f"{folder}/{name}") == link for name in os.listdir(folder))
    except OSError:
        return False


def _link(path: str) -> bytes:
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return b""
