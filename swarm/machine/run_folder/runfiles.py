"""Small JSON files in an agent's run folder: private, and replaced as a whole.

They are not synced: they tell of processes, and after a power cut there are none.
"""

from __future__ import annotations

import contextlib
import json
import os

from swarm.machine import own, records
from swarm.machine.atomic import write_atomic

PROCESS = "process.json"
EXIT = "exit.json"
STATE = "state.json"
#: What came of telling the agent of its messages.
NUDGE = "nudge.json"
#: The message for an agent that has been idle for long.
HEARTBEAT = "heartbeat.json"
#: How near it is to the limits of its budget.
BUDGET = "budget.json"
#: To which limits it was started.
LIMITS = "limits.json"
#: How much it has on the disk, and by whom its other limits are held.
DISK = "disk.json"
HELD = "held.json"
#: What changed outside of its worktree during its turns.
OUTSIDE = "outside.json"
#: Where its program writes down its conversations.
RECORD = "record.json"
#: Where services of programs, which serve more than one agent, name their processes.
SERVES = "serves.json"
#: The mark that its end was reported.
TOLD = "told.json"
CALLED = "called.json"
#: What came of its task: said once, whoever noticed, and corrected by itself alone.
COMPLETION = "completion.json"
COMPLETION_LOCK = "completion.lock"
#: The marks that it finished its task, and that a held one got its.
FINISHED = "finished.json"
TASK_GIVEN = "task-given.json"
#: Messages delivered to its program and not yet found in the program's record.
GIVEN = "given.json"
REVIEWING = "reviewing.json"
#: How the reviewer of its role is asked.
REVIEWER = "reviewer.json"
#: Where its supervisor answers, or why it does not.
SOCKET = "socket.json"
#: What a socket's name ends with until it listens.
NEW_SOCKET = ".new"
#: What its screen showed when it was last read.
SCREEN = "screen.json"
_LIMIT = 64 << 10


def write(folder: str, name: str, record: dict[str, object]) -> None:
    """Put a record in place in one step; readers see the old one or the new.

    Raises:
        OSError: nothing changed.
    """
    data = json.dumps({"schema": records.SCHEMA, **record}).encode("ascii") + b"\n"
    write_atomic(os.path.join(folder, name), data, durable=False)


def read(folder: str, name: str) -> dict[str, object] | None:
    """Return a record, or None: not there, not readable, not one of ours, or of a newer schema."""
    return records.read(os.path.join(folder, name))


def read_any(path: str) -> dict[str, object] | None:
    """Return a record of another program; None when it is not there, not readable, or none."""
    try:
        return records.read_object(path, _LIMIT)
    except (OSError, ValueError):
        return None


def remove(folder: str, name: str) -> None:
    """Remove a file that may not be there, or may not let itself be removed."""
    with contextlib.suppress(OSError):
        own.unlink(os.path.join(folder, name))
