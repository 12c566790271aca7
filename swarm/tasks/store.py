"""The folders of tasks: one for each, with its record, its events and its runs.

    tasks/lock                          held by whoever acts on tasks: one process at a time
    tasks/accept.lock                   held for the moment in which a task is accepted, or old ones are removed
    tasks/.open/<id>                    of each task that is not over; it is made before the record
    tasks/<id>/task.json                the record; a folder without one holds no task
    tasks/<id>/events.jsonl             the events, numbered from 1
    tasks/<id>/env.json                 variables for its program, until it is over; never shown
    tasks/<id>/secrets.json             what must not be kept of what its program writes, until it is over; never shown
    tasks/<id>/runs/<operation>/        launch, process, exit, out, err

The record is written before the event, and carries it: whoever acts next adds the line that a crash left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.agents.launching import unseen
from swarm.kit import files
from swarm.kit.errors import UsageProblem
from swarm.machine import locks, own
from swarm.project.errors import Locked, RecordProblem
from swarm.tasks import record
from swarm.tasks.errors import TaskNotFound
from swarm.tasks.values import TRANSITIONS, TaskEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.project.layout import Layout
    from swarm.tasks.values import AgentTask, TaskState

RECORD, EVENTS, ENVIRONMENT, RUNS = "task.json", "events.jsonl", "env.json", "runs"
SECRETS = "secrets.json"
_OPEN, _ASIDE = ".open", ".gone-"
_LOCK, _ACCEPT_LOCK = "lock", "accept.lock"
_LARGEST = 64 << 20
_PAUSE = 0.01
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_id(text: object, what: str = "task id") -> str:
    """Return an id that can name a folder.

    Raises:
        UsageProblem
    """
    if not isinstance(text, str) or not text.isascii() or _ID.fullmatch(text) is None:
        shown = ascii(text)[:60]
        raise UsageProblem(f"invalid {what} {shown}", hint="use 1 to 64 letters, digits, - and _")
    return text


class Store:
    """The tasks of one repository. Reading never makes anything."""

    def __init__(self, layout: Layout) -> None:
        self._top = layout.tasks

    def folder(self, task_id: str) -> Path:
        """Return the folder of a task."""
        return self._top / task_id

    def record(self, task_id: str) -> Path:
        """Return the file of a task's record."""
        return self._top / task_id / RECORD

    def run_folder(self, task_id: str, operation: str) -> Path:
        """Return the folder of one run."""
        return self._top / task_id / RUNS / operation

    def aside(self, task_id: str) -> Path:
        """Return where the folder of a task goes that is being removed."""
        return self._top / f"{_ASIDE}{task_id}"

    def left_aside(self) -> tuple[Path, ...]:
        """Return the folders that are being removed, or were when somebody was killed."""
        try:
            return tuple(self._top / name for name in sorted(os.listdir(self._top)) if name.startswith(_ASIDE))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    # --- read -----------------------------------------------------------------------------------

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all tasks."""
        try:
            found = sorted(os.listdir(self._top))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(name for name in found if _ID.fullmatch(name) and self.record(name).is_file())

    def open_ids(self) -> tuple[str, ...]:
        """Return the ids of all tasks that may not be over."""
        try:
            found = sorted(os.listdir(self._top / _OPEN))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(name for name in found if _ID.fullmatch(name))

    def unfinished(self) -> tuple[AgentTask, ...]:
        """Return the tasks that are not over, oldest first; what cannot be read is left to ``scan``."""
        found = []
        for task_id in self.open_ids():
            with contextlib.suppress(RecordProblem):
                task = self.find(task_id)
                found += [task] if task is not None and not task.is_over else []
        return tuple(sorted(found, key=lambda one: (one.created_ms, one.id)))

    def find(self, task_id: str) -> AgentTask | None:
        """Return a task; None: there is none of this id."""
        path = self.record(task_id)
        try:
            return record.from_bytes(files.read_small(path, _LARGEST), str(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def get(self, task_id: str) -> AgentTask:
        """Return a task.

        Raises:
            TaskNotFound, UsageProblem, RecordProblem
        """
        found = self.find(check_id(task_id))
        if found is None:
            raise TaskNotFound(f"there is no task {task_id}")
        return found

    def scan(self) -> tuple[tuple[AgentTask, ...], tuple[RecordProblem, ...]]:
        """Return all tasks, oldest first, and the problems of the records that cannot be read."""
        tasks: list[AgentTask] = []
        problems: list[RecordProblem] = []
        for task_id in self.ids():
            try:
                task = self.find(task_id)
            except RecordProblem as problem:
                problems.append(problem)
            else:
                tasks += [task] if task is not None else []
        return tuple(sorted(tasks, key=lambda one: (one.created_ms, one.id))), tuple(problems)

    def events(self, task: AgentTask) -> tuple[TaskEvent, ...]:
        """Return the events of a task, with the last one also where its line is not written yet."""
        known = _events(self.folder(task.id) / EVENTS)
        if task.last_event is not None and (not known or known[-1].number < task.last_event.number):
            known.append(task.last_event)
        return tuple(known)

    def environment(self, task_id: str) -> dict[str, str]:
        """Return the variables that the caller gave for the program."""
        return unseen.variables(self.environment_file(task_id))

    def secrets_file(self, task_id: str) -> Path:
        """Return where the credentials are that its program was given; see `secrecy.py`."""
        return self.folder(task_id) / SECRETS

    def environment_file(self, task_id: str) -> Path:
        """Return where these are; the file is there until the task is over."""
        return self.folder(task_id) / ENVIRONMENT

    # --- write ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def accepting(self, timeout: float) -> Iterator[None]:
        """Hold the lock below which tasks come and go."""
        with self._locked(_ACCEPT_LOCK, timeout):
            yield

    @contextlib.contextmanager
    def acting(self, timeout: float) -> Iterator[None]:
        """Hold the lock below which tasks change.

        Raises:
            Locked: somebody else held it for all of *timeout* seconds.
        """
        with self._locked(_LOCK, timeout):
            yield

    @contextlib.contextmanager
    def _locked(self, name: str, timeout: float) -> Iterator[None]:
        files.make_private_dir(self._top)
        path = os.fspath(self._top / name)
        fd = own.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + timeout
            while not locks.try_lock(fd):
                if time.monotonic() >= deadline:
                    raise Locked(f"cannot get the lock of the tasks within {timeout:g} s: another process holds it")
                time.sleep(_PAUSE)
            yield
        finally:
            os.close(fd)  # which frees it

    def add(self, task: AgentTask, environment: dict[str, str]) -> AgentTask:
        """Write a new task down, as the caller holds the lock for that; it is there when its record is."""
        folder = self.folder(task.id)
        if folder.is_dir():  # half of one whose acceptance was killed
            files.remove_tree(folder)
        files.make_private_dir(self._top / _OPEN)
        files.write_atomic(self._top / _OPEN / task.id, b"", replace=True)
        files.make_private_dir(folder)
        files.make_private_dir(folder / RUNS)
        if environment:
            files.write_atomic(folder / ENVIRONMENT, json.dumps(environment).encode("ascii"))
        event = _event(task, "accepted")
        made = replace(task, events=event.number, last_event=event)
        files.write_atomic(folder / RECORD, record.to_bytes(made))
        files.sync_folder(self._top)
        return made

    def change(self, task: AgentTask, state: TaskState, kind: str, detail: str = "", **fields: object) -> AgentTask:
        """Bring a task into another state, with an event; the caller holds the lock.

        Args:
            fields: further fields of the record that change.
        """
        if state not in TRANSITIONS[task.state]:
            raise AssertionError(f"{task.state} is not followed by {state}")
        now = replace(task, state=state, **fields)  # type: ignore[arg-type]  # by name
        event = _event(now, kind, detail)
        self._log(task)
        done = replace(now, events=event.number, last_event=event)
        files.write_atomic(self.record(task.id), record.to_bytes(done))
        self._log(done)
        return done

    def _log(self, task: AgentTask) -> None:
        """Add the line of the last event, if it is not there."""
        path = self.folder(task.id) / EVENTS
        event = task.last_event
        if event is None:
            return
        known = _events(path)
        if not known or known[-1].number < event.number:
            _cut_torn_line(path)
            files.append_line(path, json.dumps(record.event_to_dict(event)).encode("ascii"))

    def close(self, task_id: str) -> None:
        """Forget what only an unfinished task needs: its mark, the variables for its program, and its credentials."""
        files.unlink_if_there(self.secrets_file(task_id))
        files.unlink_if_there(self.folder(task_id) / ENVIRONMENT)
        files.unlink_if_there(self._top / _OPEN / task_id)


def _event(task: AgentTask, kind: str, detail: str = "") -> TaskEvent:
    now = time.time_ns() // 1_000_000
    operation = task.operation or (task.runs[-1].operation if task.runs else "")
    return TaskEvent(task.events + 1, now, kind, task.state, detail, operation)


def _events(path: Path) -> list[TaskEvent]:
    """Return the whole lines of a log; a torn one at the end is none."""
    try:
        data = files.read_small(path, _LARGEST)
    except FileNotFoundError:
        return []
    found = []
    for line in data.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found.append(record.event_from_dict(json.loads(line)))
    return found


def _cut_torn_line(path: Path) -> None:
    """End a line that a crash left without its end, so that the next one is whole."""
    try:
        fd = own.open(os.fspath(path), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(fd).st_size
        data = os.pread(fd, size, 0)
        whole = data.rfind(b"\n") + 1
        if whole != size:
            os.ftruncate(fd, whole)
    finally:
        os.close(fd)
