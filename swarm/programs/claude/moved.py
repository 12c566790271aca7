"""Whether the conversation of an agent goes on elsewhere: as a background session of Claude Code's own service.

A key at an empty prompt, or ``/bg``, forks it there.  What stays in the pane shows a list, or has ended; the session
file of the program goes on to say that it is idle.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swarm.machine import processes, records
from swarm.machine.run_folder import runfiles
from swarm.machine.run_folder.program_facts import one_line
from swarm.programs.claude import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

_LIMIT = 16 << 20


def moved_to(folder: str | Path, run_dir: str | Path, pid: int) -> str:
    """Return the background session in which an agent's conversation lives; empty when it does in no other.

    Args:
        folder: the program's configuration folder.
        pid: of the agent's own program; 0 when that has ended.
    """
    parked = (
        (runfiles.read_any(os.path.join(folder, "sessions", f"{pid}.json")) or {}).get("parkedJobId") if pid else None
    )
    if pid and not parked:
        return ""
    started_with = os.path.join(run_dir, SETTINGS)
    for name, worker in _workers(folder).items():
        if parked in (None, name) and _lives(worker) and started_with in _flags(worker):
            return one_line(name)
    return ""


def _workers(folder: str | Path) -> dict[str, dict[str, Any]]:
    """Return the sessions of the service by their names, as it has written them down."""
    try:
        workers = records.read_object(os.path.join(folder, "daemon", "roster.json"), _LIMIT).get("workers")
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in workers.items() if isinstance(v, dict)} if isinstance(workers, dict) else {}


def _lives(worker: dict[str, Any]) -> bool:
    pid, start = worker.get("pid"), worker.get("procStart")
    return isinstance(pid, int) and isinstance(start, str) and start.isdecimal() and processes.is_alive(pid, int(start))


def _flags(worker: dict[str, Any]) -> list[Any]:
    """Return its start options; an agent's settings file belongs to it alone."""
    dispatch = worker.get("dispatch")
    flags = dispatch.get("respawnFlags") if isinstance(dispatch, dict) else None
    return flags if isinstance(flags, list) else []
