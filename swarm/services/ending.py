"""End components: ask them, or signal exactly the processes that they wrote down."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from swarm.machine import processes
from swarm.services import calling, place
from swarm.services.errors import ServiceProblem
from swarm.services.values import ComponentEnded

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.services.values import Record

#: Between SIGTERM and SIGKILL.
GRACE = 5.0
_ANSWER, _LOOK, _KILLED = 10.0, 0.02, 5.0


def shut_down(root: Path, record: Record, timeout: int, *, force: bool) -> ComponentEnded:
    """Ask a component to end; a task that runs may go on so long.

    Args:
        timeout: seconds.
        force: its task is cancelled at once.
    """
    folder = place.folder_of(root, record.type, record.name)
    how = {"timeout_seconds": timeout, "force": force, "drain": not force}
    try:
        reply = calling.ask(calling.Private(folder, _ANSWER), "POST", "/shutdown", how)
    except ServiceProblem as problem:
        return ComponentEnded(record.type, record.name, done=False, words=problem.message)
    return ComponentEnded(record.type, record.name, reply.is_good, reply.words)


def await_end(root: Path, record: Record, seconds: float) -> bool:
    """Wait for the end of a server; False: it is still there."""
    until = time.monotonic() + seconds
    while place.find(root, record.type, record.name) == record:
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK)
    return True


def kill(record: Record) -> ComponentEnded:
    """End the process of a server: SIGTERM, after five seconds SIGKILL. Its task goes on."""
    if not processes.send(record.pid, record.start, signal.SIGTERM):
        return ComponentEnded(record.type, record.name, done=True, words="it had ended")
    if _gone(record, GRACE):
        return ComponentEnded(record.type, record.name, done=True, words="ended by SIGTERM")
    processes.send(record.pid, record.start, signal.SIGKILL)
    done = _gone(record, _KILLED)
    return ComponentEnded(
        record.type, record.name, done, "ended by SIGKILL" if done else f"process {record.pid} goes on"
    )


def _gone(record: Record, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while processes.is_alive(record.pid, record.start):
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK)
    return True
