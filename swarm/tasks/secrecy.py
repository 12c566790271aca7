"""Keep the credentials of a task out of what is kept of it: its record, its events, what its program wrote.

tasks/<id>/secrets.json    the values that its program, or the door of its box, was given; until the task is over
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swarm.kit import files, redaction
from swarm.kit.errors import SwarmError
from swarm.machine import records
from swarm.programs import turns
from swarm.tasks.bench import program_of

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.tasks.bench import Bench
    from swarm.tasks.evidence import Outcome
    from swarm.tasks.store import Store
    from swarm.tasks.values import AgentTask

#: So much of the end of what a program wrote is kept.
_KEPT = 16 << 20
#: No environment is larger.
_LARGEST = 8 << 20


def note(bench: Bench, task: AgentTask) -> None:
    """Write down the credentials that the program of a task is about to be given."""
    options = bench.role(task.role).options
    environ = {**bench.world.environ, **options.env.set}
    found = dict.fromkeys((*values(bench.store, task.id), *redaction.values_of(environ)))
    for service in program_of(task).models(options, environ):
        for value in service.headers.values():
            found |= dict.fromkeys((value, value.removeprefix("Bearer ")))
    kept = [one for one in found if "{token}" not in one]
    if kept:
        path = bench.store.secrets_file(task.id)
        files.write_atomic(path, json.dumps({"values": kept}).encode("ascii"), 0o600, replace=True, durable=False)


def values(store: Store, task_id: str) -> tuple[str, ...]:
    """Return the credentials that a task was given, as long as it is not over."""
    try:
        found = records.read_object(str(store.secrets_file(task_id)), _LARGEST).get("values")
    except (FileNotFoundError, ValueError):
        return ()
    return tuple(str(one) for one in found) if isinstance(found, list) else ()


def without(store: Store, task: AgentTask, outcome: Outcome) -> Outcome:
    """Return what came of a run without credentials."""
    known = values(store, task.id)
    said = outcome.said._replace(
        text=redaction.from_text(outcome.said.text, known), message=redaction.from_text(outcome.said.message, known)
    )
    return outcome._replace(why=redaction.from_text(outcome.why, known), said=said)


def clear(store: Store, task: AgentTask, folder: Path) -> None:
    """Take credentials out of what a program has written; it is over, and so is all that it started.

    Args:
        folder: of the run.
    """
    known = values(store, task.id)
    for name in (turns.OUT, turns.ERR):
        try:
            with files.open_regular(folder / name) as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - _KEPT))
                data = file.read(_KEPT)
        except (OSError, SwarmError):
            continue
        cleared = redaction.from_bytes(data, known)
        if cleared != data or size > _KEPT:
            files.write_atomic(folder / name, cleared, 0o600, replace=True, durable=False)
