"""The sockets of servers: on this machine alone, or in a folder of the user's own."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys

from swarm import EnvironmentProblem

_WAITING = 512
#: Of macOS: the socket option that gives the process at the other end.
_LOCAL_PEERPID, _SOL_LOCAL = 2, 0


def loopback(port: int) -> socket.socket:
    """Listen on this machine alone; named as TCP, since asyncio looks at that before it sends small pieces at once.

    Raises:
        EnvironmentProblem: the port is taken.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.listen(_WAITING)
    except OSError as problem:
        made.close()
        raise EnvironmentProblem(
            f"cannot listen on 127.0.0.1:{port}: {problem.strerror}", hint="choose another port, or 0 for any free one"
        ) from problem
    return made


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
