"""The facts about an agent's program: from its run folder, the process table, and the program's own words.

Standard library only, and so is what is imported here: a supervisor answers from the same facts as a listing.
"""

from __future__ import annotations

import os
import time
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from swarm.machine import processes
from swarm.machine.run_folder import program_facts, runfiles
from swarm.machine.ttys import at_prompt
from swarm.programs.reading import notes
from swarm.programs.status import ProgramFacts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from swarm.machine.run_folder.program_facts import Process
    from swarm.programs.status import OwnWords

#: For how long it may be on its way to its first turn.
_FIRST_TURN_MS = 120_000


def facts(run_dir: str | Path) -> ProgramFacts:
    """Return the known facts about the program of a run folder. Never raises for missing files."""
    process = program_facts.read_process(run_dir)
    stopped = _time_of(os.path.join(run_dir, "stop.json"))
    pending = _time_of(os.path.join(run_dir, "launch.json"))
    if pending:  # at its gate: the records are of an earlier start
        return ProgramFacts(launched=True, stopped_ms=stopped if stopped >= pending else 0)
    if process is None:
        return ProgramFacts(launched=os.path.exists(os.path.join(run_dir, "role.md")), stopped_ms=stopped)
    ended = program_facts.read_exit(run_dir)
    said = program_facts.read_state(run_dir)
    if ended is not None and not ended.is_of(process):
        ended = None  # of an earlier start
    alive = ended is None and program_facts.alive(process)
    told = notes.read(run_dir)
    return ProgramFacts(
        launched=True,
        pid=process.pid,
        supervisor=process.supervisor_pid,
        alive=alive,
        supervised=ended is None and program_facts.supervised(process),
        started_ms=process.started_ms,
        same_boot=process.boot_id == processes.boot_id(),
        exit_code=ended.code if ended else None,
        exit_signal=ended.signal if ended else None,
        exit_cause=ended.cause if ended else "",
        ended_ms=ended.ended_ms if ended else 0,
        said_state=said.state if said else "",
        said_detail=said.detail if said else "",
        said_ms=said.at_ms if said else 0,
        said_prompt=said.prompt if said else "",
        foreground=at_prompt(_program_of(process)) if alive else None,
        stopped_ms=stopped if stopped >= process.started_ms else 0,
        own=_own_words(run_dir, process, told) if alive else None,
        asked=alive and was_asked(process, told),
        budget=_budget(run_dir, process),
        ran_ms=process.ran_ms,
        prints=process.prints,
        deaf=process.deaf,
        operation=process.operation,
        elsewhere=_elsewhere(run_dir, process.pid if alive else 0, told),
    )


def _program_of(process: Process) -> int:
    """Return the process that is the program, also where it runs in a box."""
    seen = processes.in_box(process.pid) if process.boxed else None
    return process.pid if seen is None else seen.pid


def was_asked(process: Process, told: Mapping[str, str]) -> bool:
    """Whether a program was started a moment ago with a first prompt, and may not have come to it yet."""
    fresh = time.time_ns() // 1_000_000 - process.started_ms < _FIRST_TURN_MS
    return fresh and told.get("asked") == "yes"


def _budget(run_dir: str | Path, process: Process) -> str:
    """Return a program's use of its limits in words; empty if far below."""
    record = runfiles.read(str(run_dir), runfiles.BUDGET) or {}
    at_ms, notes = record.get("at_ms"), record.get("notes")
    if not isinstance(at_ms, int) or at_ms < process.started_ms or not isinstance(notes, list):
        return ""
    over = [note for note in notes if isinstance(note, dict) and note.get("level") == "over"]
    return program_facts.one_line("; ".join(str(note.get("words")) for note in over or notes if isinstance(note, dict)))


def _source(run_dir: str | Path) -> dict[str, str]:
    """Return where its program keeps its records, also that of a command of the user's."""
    found = runfiles.read(str(run_dir), runfiles.RECORD) or {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _time_of(path: str) -> int:
    try:
        return int(os.stat(path).st_mtime_ns // 1_000_000)
    except OSError:
        return 0


@cache
def _state(program: str) -> Any:
    """Return the module in a program's folder that reads its own report of its state; None without one."""
    try:
        return import_module(f"swarm.programs.{program}.state") if program.isidentifier() else None
    except ModuleNotFoundError:
        return None


def _own_words(run_dir: str | Path, process: Process, told: Mapping[str, str]) -> OwnWords | None:
    """Return the state that the living program reports; None without a report.

    Args:
        told: what was noted about the program when it was launched.
    """
    says = getattr(_state(told.get("program", "")), "own_words", None)
    words: OwnWords | None = says(run_dir, process, told) if says else None
    return words


def _elsewhere(run_dir: str | Path, pid: int, told: Mapping[str, str]) -> str:
    """Return in words where an agent's conversation goes on without its pane; empty: nowhere.

    Args:
        pid: of its program; 0 when that has ended.
        told: what was noted about the program when it was launched.
    """
    tells = getattr(_state({**_source(run_dir), **told}.get("program", "")), "elsewhere", None)
    return str(tells(run_dir, pid, told)) if tells else ""
