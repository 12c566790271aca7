"""The folder of a component: its lock, its record, its socket."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import locks, own, processes, records
from swarm.project import names
from swarm.services.errors import ComponentRuns
from swarm.services.values import Record

if TYPE_CHECKING:
    from pathlib import Path

FOLDER, SOCKET = "services", "socket"
_LOCK, _STATE = "lock", "state.json"


def folder_of(root: Path, kind: str, name: str) -> Path:
    """Return the folder of a component."""
    return root / FOLDER / f"{kind}-{name}"


def take(root: Path, kind: str, name: str) -> int:
    """Become the server of a component for the life of this process: return the lock's descriptor.

    Raises:
        ComponentRuns: another process is.
    """
    folder = folder_of(root, kind, name)
    files.make_private_dir(root / FOLDER)
    files.make_private_dir(folder)
    fd = own.open(os.fspath(folder / _LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if locks.try_lock(fd):
        files.unlink_if_there(folder / _STATE)  # of a server that was killed
        return fd
    os.close(fd)
    now = find(root, kind, name)
    which = f"process {now.pid} does, on {now.url}" if now else "a process does that is just starting"
    raise ComponentRuns(f"cannot serve {kind} {name}: {which}")


def write(root: Path, kind: str, name: str, address: tuple[str, int], *, is_secured: bool = False) -> Record:
    """Write down that this process serves at an address, and return that."""
    pid = os.getpid()
    host, port = address
    record = Record(kind, name, pid, processes.start_of(pid) or 0, processes.boot_id(), port, host, is_secured)
    data = json.dumps(record._asdict()).encode("ascii")
    files.write_atomic(folder_of(root, kind, name) / _STATE, data, durable=False)
    return record


def leave(root: Path, kind: str, name: str) -> None:
    """Take back what ``write`` wrote, and the socket; the lock goes with the process."""
    for one in (_STATE, SOCKET):
        with contextlib.suppress(OSError):
            files.unlink_if_there(folder_of(root, kind, name) / one)


def find(root: Path, kind: str, name: str) -> Record | None:
    """Return the record of a living server; None without one, whatever is written down."""
    folder = folder_of(root, kind, name)
    if not locks.is_held(folder / _LOCK):
        return None
    try:
        said = records.read_object(str(folder / _STATE))
        pid, start, port = (int(said[key]) for key in ("pid", "start", "port"))
        where = str(said.get("host", "127.0.0.1")), said.get("is_secured") is True
        found = Record(kind, name, pid, start, str(said["boot"]), port, *where)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.boot == processes.boot_id() and processes.is_alive(found.pid, found.start) else None


def everything(root: Path) -> tuple[Record, ...]:
    """Return the records of all living servers of a swarm directory."""
    try:
        entries = sorted(os.listdir(root / FOLDER))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    found = []
    for entry in entries:
        kind, _, name = entry.partition("-")
        with contextlib.suppress(SwarmError):
            record = find(root, kind, names.check_name(kind, name))
            found += [record] if record is not None else []
    return tuple(found)
