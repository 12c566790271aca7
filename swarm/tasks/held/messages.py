"""Messages to a held task: while its program works they come into that turn, and else they are the next prompt.

    tasks/<id>/messages/<message>.json     the text; it is there when the sender has its receipt
    tasks/<id>/messages/<message>.heard    the program has it, as the program said

A supervisor gives them to the program (``supervisor/talk.py``).  When a run is over it is settled what became of each:
the program's own record says whether it has a message, and what it lacks is the next prompt.  The record of the task
says so from then on, in the same step in which the prompt is added: no message is lost, and none is given twice.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid4, uuid5

from swarm.kit import files
from swarm.machine import records
from swarm.project import codec
from swarm.supervisor.talk import NOTE, TEXT
from swarm.tasks.bench import program_of
from swarm.tasks.errors import TaskNotHeld, TaskTaken
from swarm.tasks.store import check_id
from swarm.tasks.values import MessageState, TaskMessage, TurnReceipt

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from swarm.tasks.bench import Bench
    from swarm.tasks.store import Store
    from swarm.tasks.values import AgentTask

_LARGEST = 4 << 20
_BETWEEN = "\n\n"


def folder_of(store: Store, task: AgentTask) -> Path:
    """Return the folder of a task's messages."""
    return store.folder(task.id) / "messages"


def uuid_of(task: AgentTask, what: object) -> str:
    """Return the id under which a program is given one of a task's texts."""
    return str(uuid5(NAMESPACE_URL, f"swarm:{task.id}/{task.created_ms}/{what}"))


def is_talked_with(task: AgentTask) -> bool:
    """Whether messages reach its program while it works, and its requests are answered."""
    return task.hold and bool(program_of(task).speech)


def put(bench: Bench, task: AgentTask, text: str, message_id: str, by: str) -> TaskMessage:
    """Write a message down; the caller holds the lock. The same one twice is one message.

    Raises:
        TaskNotHeld: it does not wait for more.
        TaskTaken: another message has this id.
    """
    name = check_id(message_id, "message id") if message_id else uuid4().hex
    known = all_of(bench.store, task)
    same = next((one for one in known if one.id == name), None)
    if same is not None:
        if same.text == text:
            return same
        raise TaskTaken(f"cannot send {name}: another message of {task.id} has this id")
    if not task.hold:
        raise TaskNotHeld(f"cannot send a message to {task.id}: it is not held, and ends with its turn")
    folder = folder_of(bench.store, task)
    files.make_private_dir(folder)
    number, now = 1 + max((one.number for one in known), default=0), time.time_ns() // 1_000_000
    record = {"id": name, "uuid": uuid_of(task, name), "number": number, "text": text, "by": by, "at_ms": now}
    files.write_atomic(folder / f"{name}{TEXT}", codec.encode(record))
    files.sync_folder(folder.parent)
    return TaskMessage(name, number, text, by, now, MessageState.QUEUED)


def all_of(store: Store, task: AgentTask) -> tuple[TaskMessage, ...]:
    """Return the messages of a task, oldest first, as they stand."""
    found = [_message(folder_of(store, task), task, one) for one in _records(folder_of(store, task))]
    return tuple(sorted(found, key=lambda one: one.number))


def _records(folder: Path) -> list[dict[str, Any]]:
    found = []
    try:
        paths = [path for path in folder.iterdir() if path.name.endswith(TEXT) and not files.is_temporary(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found.append(codec.decode(files.read_small(path, _LARGEST), str(path)))
    return found


def _message(folder: Path, task: AgentTask, record: dict[str, Any]) -> TaskMessage:
    name = str(record["id"])
    made = TaskMessage(
        name, int(record["number"]), str(record["text"]), str(record["by"]), int(record["at_ms"]), MessageState.QUEUED
    )
    receipt = next((one for one in task.receipts if one.message == name), None)
    turn = receipt.turn if receipt is not None else _heard_in(folder, task, name)
    if not turn:
        return made._replace(state=MessageState.UNDELIVERED) if task.is_over else made
    rests = receipt is not None and (turn < task.turn or task.is_over or not task.operation)
    failed = next((one.failure for one in reversed(task.runs) if one.turn == turn), None)
    answered = rests and failed is None
    return made._replace(state=MessageState.ANSWERED if answered else MessageState.IN_TURN, turn=turn)


def _heard_in(folder: Path, task: AgentTask, name: str) -> int:
    """Return the turn in which the program heard a message; 0: it did not, as far as it said."""
    try:
        operation = records.read_object(str(folder / f"{name}{NOTE}"), _LARGEST).get("operation")
    except (FileNotFoundError, ValueError):
        return 0
    return next((one.turn for one in task.runs if one.operation == operation), 0)


# --- when a run begins, and when it is over ---------------------------------------------------------


def known(bench: Bench, task: AgentTask, heard: frozenset[str]) -> list[str]:
    """Return the messages that the program has, and need not be given.

    Args:
        heard: the ids of the texts in its own record.
    """
    had = {one.message for one in task.receipts}
    return [one.id for one in all_of(bench.store, task) if one.id in had or uuid_of(task, one.id) in heard]


def open_ones(bench: Bench, task: AgentTask) -> list[TaskMessage]:
    """Return the messages of which it is not settled which turn has them."""
    had = {one.message for one in task.receipts}
    return [one for one in all_of(bench.store, task) if one.id not in had]


def settled(bench: Bench, task: AgentTask, heard: frozenset[str]) -> AgentTask:
    """Return a task whose turn is over, with receipts for the messages that its program has."""
    fresh = [TurnReceipt(one.id, task.turn) for one in open_ones(bench, task) if uuid_of(task, one.id) in heard]
    return replace(task, receipts=(*task.receipts, *fresh))


def as_prompt(bench: Bench, task: AgentTask) -> dict[str, Any] | None:
    """Return the fields of a task that change when what no turn has becomes its next prompt; None: there is nothing."""
    left = open_ones(bench, task)
    if not left:
        return None
    receipts = tuple(TurnReceipt(one.id, task.turn + 1) for one in left)
    prompt = _BETWEEN.join(one.text for one in left)
    return {"prompts": (*task.prompts, prompt), "receipts": (*task.receipts, *receipts)}
