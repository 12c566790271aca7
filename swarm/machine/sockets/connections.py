"""Which processes hold one end of a TCP connection on this machine (Linux)."""

from __future__ import annotations

import os
import socket
import sys

from swarm.machine import processes

LOOPBACK = "127.0.0.1"
_ESTABLISHED = b"01"
#: Columns of /proc/net/tcp.
_LOCAL, _REMOTE, _STATE, _USER, _INODE = 1, 2, 3, 7, 9


def holders(port: int, other: int, hosts: tuple[str, str] = (LOOPBACK, LOOPBACK)) -> list[int]:
    """Return the processes with a descriptor of one end of a connection.

    Args:
        port, other: of this end, and of the other.
        hosts: the addresses of both, as numbers.
    """
    line = _line(port, other, hosts)
    return [] if not line else [pid for pid in _pids() if _holds(pid, b"socket:[" + line[_INODE] + b"]")]


def user(port: int, other: int, hosts: tuple[str, str] = (LOOPBACK, LOOPBACK)) -> int | None:
    """Return the user whose program holds one end of a connection; the arguments are those of ``holders``."""
    line = _line(port, other, hosts)
    return int(line[_USER]) if line else None


def _line(port: int, other: int, hosts: tuple[str, str]) -> list[bytes]:
    pairs = zip(hosts, (port, other), strict=True)
    # The kernel writes an address as a number of this machine.
    wanted = [b"%08X:%04X" % (int.from_bytes(socket.inet_aton(host), sys.byteorder), one) for host, one in pairs]
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
