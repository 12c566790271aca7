"""The supervisor's and the program's own records about an agent's program.

    <run folder>/process.json   written before the program runs: which process it is
    <run folder>/exit.json      written when it and everything it started has ended: how
    <run folder>/state.json     what the program says of itself

Facts, not status: nothing here says that a process *is* alive. That is asked of the machine
(``alive``), by boot, pid and start, so that neither a recycled pid nor another boot is mistaken.
"""

from __future__ import annotations

import functools
import os
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args, get_type_hints

from swarm.machine import broker, processes
from swarm.machine.run_folder import runfiles

if TYPE_CHECKING:
    from pathlib import Path

Cause = Literal["exited", "signal", "stopped", "hangup", "budget", "timeout"]
Says = Literal["working", "idle", "waiting", "done"]
_LONGEST_DETAIL = 300


class Process(NamedTuple):
    """The program and its supervisor.

    Attributes:
        supervisor_pid: the launcher, which is the pane's own process.
        supervisor_start: when it began; see ``proc``.
        pid: the program.
        pid_start: when it began.
        boot_id: the boot to which the pids belong.
        started_ms: milliseconds since 1970.
        argv0: what was run.
        operation: the operation that launched it.
        ran_ms: for how long programs of the agent had run before.
        prints: it does its task and ends.
        deaf: messages cannot reach it meanwhile.
        boxed: *pid* is the outer process of its box; see ``processes.in_box``.
    """

    supervisor_pid: int
    supervisor_start: int
    pid: int
    pid_start: int
    boot_id: str
    started_ms: int
    argv0: str
    operation: str
    ran_ms: int = 0
    prints: bool = False
    deaf: bool = False
    boxed: bool = False


class Exit(NamedTuple):
    """How the program ended.

    Attributes:
        pid: the program it tells of, with *pid_start* and *boot_id*.
        code: its exit status, None when a signal ended it; 127 not found, 126 could not be started.
        signal: the signal that ended it.
        cause: ``exited`` and ``signal`` by itself; ``stopped`` by SIGTERM to, ``hangup`` by SIGHUP to the supervisor;
            ``budget`` by the supervisor because a limit was reached, ``timeout`` because the time was up.
        ended_ms: milliseconds since 1970.
        operation: the operation that had launched it.
        began: false: its box could not be made, and *code* is that of who tried.
    """

    pid: int
    pid_start: int
    boot_id: str
    code: int | None
    signal: int | None
    cause: Cause
    ended_ms: int
    operation: str
    began: bool = True

    def is_of(self, process: Process) -> bool:
        """Whether it tells of this process and not of an earlier run."""
        return (self.pid, self.pid_start, self.boot_id) == (process.pid, process.pid_start, process.boot_id)


class State(NamedTuple):
    """A program's own report of its state.

    Attributes:
        state: ``waiting`` is for a human.
        detail: on what it works, or for what it waits; one printable line.
        at_ms: since when, in milliseconds since 1970.
        pid: who says so.
        prompt: what stands before the cursor while nothing is typed; empty when it does not tell.
    """

    state: Says
    detail: str
    at_ms: int
    pid: int
    prompt: str = ""


def read_process(run_dir: str | Path) -> Process | None:
    """Return process.json; None when it is not there or not readable."""
    return _read(Process, run_dir, runfiles.PROCESS)


def read_exit(run_dir: str | Path) -> Exit | None:
    """Return exit.json; None when it is not there or not readable. It may be of an earlier run: ``Exit.is_of``."""
    return _read(Exit, run_dir, runfiles.EXIT)


def read_state(run_dir: str | Path) -> State | None:
    """Return state.json; None if it is missing or invalid."""
    found = _read(State, run_dir, runfiles.STATE)
    return found and found._replace(detail=one_line(found.detail), prompt=one_line(found.prompt))


def write_state(run_dir: str | Path, state: Says, detail: str = "", prompt: str = "") -> None:
    """Write the state of the calling program.

    Args:
        prompt: what stands before the cursor while nothing is typed.

    Raises:
        OSError: it could not be written; what was said before stands.
    """
    if broker.path():
        broker.ask({"kind": "state", "state": state, "detail": one_line(detail), "prompt": one_line(prompt)})
        return
    record: dict[str, object] = {"state": state, "detail": one_line(detail), "at_ms": now_ms(), "pid": os.getpid()}
    if prompt:
        record["prompt"] = one_line(prompt)
    runfiles.write(os.fspath(run_dir), runfiles.STATE, record)


def alive(process: Process, *, boot_id: str | None = None) -> bool:
    """Whether the program is running now.

    Args:
        process: the facts about it.
        boot_id: the running boot, when the caller knows it already.
    """
    return _is_this(process, process.pid, process.pid_start, boot_id)


def supervised(process: Process, *, boot_id: str | None = None) -> bool:
    """Whether its supervisor is running now; it outlives the program until it has ended all leftovers."""
    return _is_this(process, process.supervisor_pid, process.supervisor_start, boot_id)


def _is_this(process: Process, pid: int, start: int, boot_id: str | None) -> bool:
    return process.boot_id == (boot_id or processes.boot_id()) and processes.is_alive(pid, start)


def is_reviewing(run_dir: str | Path) -> bool:
    """Whether the reviewer of an agent is at work, so that the user need not be notified yet."""
    found = runfiles.read(os.fspath(run_dir), runfiles.REVIEWING) or {}
    pid, start = found.get("pid"), found.get("pid_start")
    here = found.get("boot_id") == processes.boot_id()
    return here and isinstance(pid, int) and isinstance(start, int) and processes.is_alive(pid, start)


def now_ms() -> int:
    """Return the time of day in milliseconds."""
    return time.time_ns() // 1_000_000


def one_line(text: str) -> str:
    """Make a text harmless on a terminal: one line, printable, not too long."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_DETAIL]).split())
    return plain if len(plain) <= _LONGEST_DETAIL else plain[: _LONGEST_DETAIL - 3] + "..."


_Fact = TypeVar("_Fact", Process, Exit, State)


def _read(kind: type[_Fact], run_dir: str | Path, name: str) -> _Fact | None:
    record = runfiles.read(os.fspath(run_dir), name)
    if record is None:
        return None
    hints = _hints(kind)  # type: ignore[arg-type]  # every class is hashable
    values: dict[str, Any] = {field: record.get(field, kind._field_defaults.get(field)) for field in kind._fields}
    if not all(_fits(value, hints[name]) for name, value in values.items()):
        return None
    return kind(**values)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: object, hint: object) -> bool:
    allowed = get_args(hint)
    if not allowed:
        return type(value) is hint
    return type(value) in allowed or (isinstance(value, str) and value in allowed)
