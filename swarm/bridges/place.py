"""Where bridges are: their definitions, and of each in a repository a folder with its lock and its state."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import atomic, locks, records
from swarm.messages.directory import BRIDGE_LOCK, BRIDGES
from swarm.project.names import check_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

STARTING, UP, DOWN, STOPPED, REFUSED = "starting", "up", "down", "stopped", "refused"
_LOCK, _STATE, LEDGER, LOG = BRIDGE_LOCK, "state.json", "ledger.json", "log"


class BridgeStatus(NamedTuple):
    """A bridge of a repository.

    Attributes:
        state: ``starting``, ``up``, ``down`` (its command ended, and is started again), ``stopped``, or ``refused``
            (its definition cannot be used).
        detail: why, in a few words.
        since_ms: when it came into this state, in milliseconds since 1970; 0 when it never ran here.
        pid: its supervisor; 0 while it is stopped.
        may: its rights beside sending messages.
    """

    name: str
    state: str
    detail: str = ""
    since_ms: int = 0
    pid: int = 0
    may: tuple[str, ...] = ()


def folders(root: Path, environ: Mapping[str, str], swarm_dir: Path) -> tuple[Path, ...]:
    """Return where definitions may stand: the user's swarm directories, never one inside the repository."""
    home = environ.get("HOME", "")
    found = [str(swarm_dir), *([f"{home}/.swarm"] if os.path.isabs(home) else [])]
    inside = os.path.realpath(root)
    outside = [one for one in found if os.path.commonpath((os.path.realpath(one), inside)) != inside]
    return tuple(dict.fromkeys(type(root)(one, "bridges") for one in outside))


def defined(places: Iterable[Path]) -> dict[str, Path]:
    """Return the name of each definition with its file; of two with one name the first."""
    found: dict[str, Path] = {}
    for folder in places:
        for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
            with contextlib.suppress(SwarmError):
                found.setdefault(check_name("bridge", path.stem), path)
    return dict(sorted(found.items()))


def folder_of(state: Path, name: str) -> Path:
    """Return the folder of a bridge below ``.swarm``."""
    return state / BRIDGES / name


def take(folder: Path) -> int:
    """Lock a bridge for the life of this process; -1 when another supervisor has it."""
    files.make_private_dir(folder.parent)
    files.make_private_dir(folder)
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if not locks.try_lock(fd):
        os.close(fd)
        return -1
    atomic.sweep_temporaries(folder)
    return fd


def is_taken(folder: Path) -> bool:
    """Whether a supervisor lives."""
    return locks.is_held(folder / _LOCK)


def write(folder: Path, status: BridgeStatus) -> None:
    """Write down the state of a bridge."""
    record = {**status._asdict(), "since_ms": status.since_ms or time.time_ns() // 1_000_000}
    files.write_atomic(folder / _STATE, json.dumps(record).encode("ascii"), durable=False)


def read(state: Path, name: str, may: tuple[str, ...] = ()) -> BridgeStatus:
    """Return a bridge as it is now; without a living supervisor it is stopped, whatever was written down."""
    folder = folder_of(state, name)
    try:
        record = records.read_object(str(folder / _STATE))
        found = BridgeStatus(
            name, str(record["state"]), str(record["detail"]), int(record["since_ms"]), int(record["pid"]), may
        )
    except (OSError, ValueError, KeyError, TypeError):
        found = BridgeStatus(name, STOPPED, "never started here", 0, 0, may)
    if is_taken(folder):
        return found if found.pid else found._replace(state=STARTING)
    why = found.detail if found.state == STOPPED else "its supervisor ended"
    return found._replace(state=STOPPED, pid=0, detail=why)
