"""The finished tasks: the last ones, by number and by size. Whole folders go, and never an unfinished one."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.approvals.store import Approvals
from swarm.approvals.values import OF_TASKS
from swarm.kit import files, redaction
from swarm.kit.errors import SwarmError, UsageProblem
from swarm.programs import turns
from swarm.project.errors import RecordProblem
from swarm.tasks import secrecy
from swarm.tasks.folders import workspace
from swarm.tasks.values import Place, TaskOutput, TaskPage

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.tasks.bench import Bench
    from swarm.tasks.store import Store
    from swarm.tasks.values import AgentTask

#: Tasks on a page.
PAGE, MOST = 20, 100
_LOCK_WAIT = 5.0
#: So much of the end of each stream is given out.
_MOST_OUTPUT = 4 << 20


def page(store: Store, number: int, limit: int) -> TaskPage:
    """Return a page of the finished tasks, newest first.

    Raises:
        UsageProblem: there can be no such page.
    """
    if number < 1 or not 1 <= limit <= MOST:
        what = f"page {number} with {limit} tasks"
        raise UsageProblem(f"cannot show {what}", hint=f"pages begin at 1, and have 1 to {MOST} tasks")
    done = [task for task in store.scan()[0] if task.is_over]
    done.sort(key=lambda task: (task.ended_ms, task.id), reverse=True)
    first = (number - 1) * limit
    return TaskPage(tuple(done[first : first + limit]), number, limit, len(done))


class _Old(NamedTuple):
    ended_ns: int
    task_id: str


def prune(bench: Bench) -> tuple[str, ...]:
    """Remove the oldest finished tasks beyond what is kept; return their ids. The caller holds the lock.

    A record is not changed any more once the task is over: its time is that of the end.
    """
    wish = bench.world.settings.tasks
    _remove_trash(bench.store)
    old = _finished(bench.store)
    most = max(0, len(old) - wish.keep)
    if wish.keep_bytes:
        sizes = [_size(bench.store.folder(one.task_id)) for one in old]
        while most < len(old) - 1 and sum(sizes[most:]) > wish.keep_bytes:  # the newest stays
            most += 1
    gone = tuple(one.task_id for one in old[:most])
    for task_id in gone:
        remove(bench, task_id)
    return gone


def _finished(store: Store) -> list[_Old]:
    """Return the finished tasks, the one that ended first at the front."""
    there = store.ids()
    unfinished = set(store.open_ids())  # behind the other look: a task gets its mark before its record
    found = []
    for task_id in there:
        if task_id not in unfinished:
            with contextlib.suppress(FileNotFoundError):
                found.append(_Old(store.record(task_id).stat().st_mtime_ns, task_id))
    return sorted(found)


def remove(bench: Bench, task_id: str) -> None:
    """Remove a finished task: first out of sight, in one step, then its files."""
    task = _readable(bench.store, task_id)
    aside = bench.store.aside(task_id)
    if files.rename_within(bench.store.folder(task_id), aside):
        files.remove_tree(aside)
    if task is not None and task.place is Place.SESSION:
        Approvals(bench.world.layout.approvals).forget(OF_TASKS, task_id)
        with bench.store.accepting(_LOCK_WAIT):  # in which a new task may name the session
            workspace.remove_after(bench.world.layout, task)


def _readable(store: Store, task_id: str) -> AgentTask | None:
    try:
        return store.find(task_id)
    except RecordProblem:
        return None


def _remove_trash(store: Store) -> None:
    """Remove what a kill left aside."""
    for path in store.left_aside():
        files.remove_tree(path)


def close_half_made(bench: Bench, task_id: str) -> None:
    """Take the mark off a task that is over; of one whose acceptance was killed also its folder.

    One that is being accepted right now is left alone.
    """
    with contextlib.suppress(RecordProblem), bench.store.accepting(_LOCK_WAIT):
        task = bench.store.find(task_id)
        if task is None:
            files.remove_tree(bench.store.folder(task_id))
        if task is None or task.is_over:
            bench.store.close(task_id)


def _size(folder: Path) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total


def outputs(store: Store, task: AgentTask) -> tuple[TaskOutput, ...]:
    """Return what the program of a task wrote, run by run; without credentials, also while it runs."""
    known = secrecy.values(store, task.id)
    folders = [(run, store.run_folder(task.id, run.operation)) for run in task.runs]
    return tuple(
        TaskOutput(run, *(redaction.from_bytes(_end_of(folder / name), known) for name in (turns.OUT, turns.ERR)))
        for run, folder in folders
    )


def _end_of(path: Path) -> bytes:
    try:
        with files.open_regular(path) as file:
            file.seek(max(0, file.seek(0, 2) - _MOST_OUTPUT))
            return file.read(_MOST_OUTPUT)
    except (FileNotFoundError, SwarmError):
        return b""
