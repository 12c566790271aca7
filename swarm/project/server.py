"""Where the server of a repository is: a lock for its life, its socket, its port, and whom it refused.

<root>/.swarm/server.pid            its process, for people and other tools; whether it lives is the lock's to say
<root>/.swarm/server/lock           held for its life; the kernel frees it
<root>/.swarm/server/socket         where the doors of agents connect
<root>/.swarm/server/http         where programs of the user connect that speak HTTP
<root>/.swarm/server/server.log     what happened to it, and to requests that failed
<root>/.swarm/server/browsers.json  the browsers that are signed in, each with a sum of its token
<root>/.swarm/server/state.json     its process and its port
<root>/.swarm/server/refused.log    who asked to be which agent in vain, a line each
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import locks, own, records
from swarm.machine.mcp import forward
from swarm.project.errors import ServerRuns

if TYPE_CHECKING:
    from pathlib import Path

#: The socket for programs that speak HTTP.
HTTP = "http"
_LOCK, _STATE, _REFUSED, _PID = "lock", "state.json", "refused.log", "server.pid"
_LARGEST, _LONGEST = 1 << 20, 500
_TRIES, _MOMENT = 20, 0.01


class ServerStatus(NamedTuple):
    """A living server.

    Attributes:
        port: on 127.0.0.1; 0 without one.
    """

    pid: int
    port: int


def folder_of(state: Path) -> Path:
    """Return the folder of the server below ``.swarm``."""
    return state / forward.FOLDER


def take(state: Path) -> int:
    """Become the server for the life of this process: return the lock's descriptor.

    Raises:
        ServerRuns: another process is.
    """
    folder = folder_of(state)
    files.make_private_dir(state)
    files.make_private_dir(folder)
    fd = own.open(os.fspath(folder / _LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    for _ in range(_TRIES):  # who only asks for the server holds the lock for a moment, too
        if locks.try_lock(fd):
            files.unlink_if_there(folder / _STATE)  # of a server that was killed
            return fd
        time.sleep(_MOMENT)
    os.close(fd)
    now = status(state)
    which = f"process {now.pid}" if now else "a process that is just starting"
    raise ServerRuns(f"cannot serve this repository: {which} does already")


def status(state: Path) -> ServerStatus | None:
    """Return the living server; None without one, whatever is written down."""
    folder = folder_of(state)
    try:
        fd = own.open(os.fspath(folder / _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if locks.try_lock(fd, shared=True):
            return None
    finally:
        os.close(fd)
    try:
        record = records.read_object(str(folder / _STATE))
        return ServerStatus(int(record["pid"]), int(record["port"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(state: Path, now: ServerStatus) -> None:
    """Write down who serves."""
    files.write_atomic(state / _PID, f"{now.pid}\n".encode("ascii"), durable=False)
    files.write_atomic(folder_of(state) / _STATE, json.dumps(now._asdict()).encode("ascii"), durable=False)


def leave(state: Path) -> None:
    """Take back what ``write`` wrote, and the socket; the lock goes with the process."""
    for path in (state / _PID, folder_of(state) / _STATE, *(folder_of(state) / one for one in (forward.SOCKET, HTTP))):
        with contextlib.suppress(OSError):
            files.unlink_if_there(path)


def note_refusal(state: Path, text: str) -> None:
    """Write down who asked in vain; a full disk is no reason to stop."""
    path = folder_of(state) / _REFUSED
    line = f"{int(time.time())} {' '.join(text.split())[:_LONGEST]}\n"
    with contextlib.suppress(OSError, SwarmError):
        files.make_private_dir(folder_of(state))
        fd = own.open(os.fspath(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size > _LARGEST:
                os.ftruncate(fd, 0)  # it is the last ones that help
            os.write(fd, line.encode(errors="replace"))
        finally:
            os.close(fd)


def refusals(state: Path) -> list[str]:
    """Return the lines of the log, oldest first."""
    try:
        data = files.read_tail(folder_of(state) / _REFUSED, _LARGEST)
    except (OSError, SwarmError):
        return []
    return data.decode(errors="replace").splitlines()
