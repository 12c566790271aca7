"""An agent's program as a process: its record, and ending it."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from swarm.kit.ttys import at_prompt
from swarm.machine.run_folder import runfiles
from swarm.programs.status import ProgramFacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from swarm.machine.run_folder.program_facts import Process

#: For how long it may be on its way to its first turn.
_FIRST_TURN_MS = 120_000


def facts(run_dir: Path) -> ProgramFacts:
    """Return the known facts about the program of a run folder. Never raises for missing files."""
    from swarm.machine import processes
    from swarm.machine.run_folder import program_facts as notes
    from swarm.programs import notes as launched

    process = notes.read_process(run_dir)
    stopped = _time_of(run_dir / "stop.json")
    pending = _time_of(run_dir / "launch.json")
    if pending:  # at its gate: the records are of an earlier start
        return ProgramFacts(launched=True, stopped_ms=stopped if stopped >= pending else 0)
    if process is None:
        return ProgramFacts(launched=(run_dir / "role.md").exists(), stopped_ms=stopped)
    from swarm.programs import registry

    ended = notes.read_exit(run_dir)
    said = notes.read_state(run_dir)
    if ended is not None and not ended.is_of(process):
        ended = None  # of an earlier start
    alive = ended is None and notes.alive(process)
    told = launched.read(run_dir)
    program = registry.noted(told)
    return ProgramFacts(
        launched=True,
        pid=process.pid,
        supervisor=process.supervisor_pid,
        alive=alive,
        supervised=ended is None and notes.supervised(process),
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
        foreground=at_prompt(process.pid) if alive else None,
        stopped_ms=stopped if stopped >= process.started_ms else 0,
        own=program.own_words(run_dir, process, told) if alive else None,
        asked=alive and was_asked(process, told),
        budget=_budget(run_dir, process),
        ran_ms=process.ran_ms,
        prints=process.prints,
        deaf=process.deaf,
        operation=process.operation,
        elsewhere=registry.noted(_source(run_dir) | told).elsewhere(run_dir, process.pid if alive else 0, told),
    )


def run_aside(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Run a command of the user's in the background; a failure to start it is no error."""
    nothing = subprocess.DEVNULL
    with contextlib.suppress(OSError, ValueError):
        started = subprocess.Popen(
            list(argv), env=dict(environ), stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
        threading.Thread(target=started.wait, daemon=True).start()  # or it would stay in the process table


def end_agents(agents: Sequence[tuple[Path, str]], grace: float) -> list[tuple[str, ...]]:
    """End programs, by run folder and stamp, and everything they started; return what survived of each."""
    from swarm.kit import kill

    return [tuple(map(str, left)) for left in kill.end_agents(agents, grace)]


def idle_since(run_dir: Path) -> int:
    """Return since when a program is idle by its own words, in milliseconds since 1970; 0: not, or it does not tell."""
    own = facts(run_dir).own
    return own.since_ms if own is not None and own.state == "idle" else 0


def was_asked(process: Process, told: Mapping[str, str]) -> bool:
    """Whether a program was started a moment ago with a first prompt, and may not have come to it yet."""
    fresh = time.time_ns() // 1_000_000 - process.started_ms < _FIRST_TURN_MS
    return fresh and told.get("asked") == "yes"


def _budget(run_dir: Path, process: Process) -> str:
    """Return a program's use of its limits in words; empty if far below."""
    from swarm.machine.run_folder.program_facts import one_line

    record = runfiles.read(str(run_dir), runfiles.BUDGET) or {}
    at_ms, notes = record.get("at_ms"), record.get("notes")
    if not isinstance(at_ms, int) or at_ms < process.started_ms or not isinstance(notes, list):
        return ""
    over = [note for note in notes if isinstance(note, dict) and note.get("level") == "over"]
    return one_line("; ".join(str(note.get("words")) for note in over or notes if isinstance(note, dict)))


def _source(run_dir: Path) -> dict[str, str]:
    """Return where its program keeps its records, also that of a command of the user's."""
    found = runfiles.read(str(run_dir), runfiles.RECORD) or {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _time_of(path: Path) -> int:
    try:
        return int(path.stat().st_mtime_ns // 1_000_000)
    except OSError:
        return 0
