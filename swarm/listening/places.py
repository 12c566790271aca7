"""The sockets of servers: on this machine alone, or in a folder of the user's own."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
import sys

from swarm import EnvironmentProblem, UsageProblem

LOOPBACK = "127.0.0.1"
_WAITING = 512
#: Of macOS: the socket option that gives the process at the other end.
_LOCAL_PEERPID, _SOL_LOCAL = 2, 0


def loopback(port: int) -> socket.socket:
    """Listen on this machine alone.

    Raises:
        EnvironmentProblem: the port is taken.
    """
    return address(LOOPBACK, port)


def address(host: str, port: int, *, secured: bool = False) -> socket.socket:
    """Listen at an address; named as TCP, since asyncio looks at that before it sends small pieces at once.

    Args:
        secured: what is said there will be encrypted; without that only this machine may hear it, which the address
            of the socket decides, whatever it is called.

    Raises:
        EnvironmentProblem: the port is taken, or there is no such address.
        UsageProblem: others could listen in.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        is_safe = secured or is_loopback(made.getsockname()[0])
        if is_safe:
            made.listen(_WAITING)
    except OSError as problem:
        made.close()
        raise EnvironmentProblem(
            f"cannot listen on {host}:{port}: {problem.strerror}", hint="choose another port, or 0 for any free one"
        ) from problem
    if is_safe:
        return made
    made.close()
    raise UsageProblem(
        f"cannot listen on {host}:{port}: other machines reach it, and there is no certificate",
        hint="add --tls, and swarm makes one; or leave out --bind, and only this machine reaches it",
    )


def is_loopback(host: str) -> bool:
    """Whether an address, as numbers, is reached by this machine alone."""
    return ipaddress.ip_address(host).is_loopback


def is_here(host: str) -> bool:
    """Whether an address, as numbers, is one of this machine: only such can be listened at."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((host, 0))
        except OSError:
            return False
    return True


def private(folder: str, name: str) -> socket.socket:
    """Listen on a socket in a private folder; what a killed server left there is replaced.

    Raises:
        OSError
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    mask = os.umask(0o177)
    try:
        os.chdir(folder)  # the kernel takes no long path
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        made.bind(name)
        made.listen(_WAITING)
    except OSError:
        made.close()
        raise
    finally:
        os.umask(mask)
        os.fchdir(here)
        os.close(here)
    return made


def peer(connection: socket.socket) -> int:
    """Return the process at the other end of a private socket; 0: it is another user's."""
    if sys.platform == "linux":
        pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid) if uid == os.geteuid() else 0
    return int(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID))
