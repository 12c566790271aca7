"""How the run of a task stands, from its folder and the process table."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from swarm.machine import processes
from swarm.machine.run_folder import program_facts
from swarm.programs import turns

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.programs.base import Program
    from swarm.tasks.values import TaskRun

#: Causes of an end that no supervisor wrote down.
LOST, NEVER = "lost", "never begun"


class Stand(StrEnum):
    """How a run stands."""

    BEGINS = "begins"  # its supervisor has not named the program yet
    RUNS = "runs"
    OVER = "over"  # its supervisor wrote down the end, and everything that it started is gone
    NEVER = "never"  # its supervisor is gone, and no program has begun
    LOST = "lost"  # its supervisor is gone without a word


class Evidence(NamedTuple):
    """What is known about a run.

    Attributes:
        pid: of the program; 0: not known.
        ended: how it ended; None: it did not, or nobody saw it.
        ended_ms: when.
    """

    stand: Stand
    pid: int = 0
    started_ms: int = 0
    ended: turns.Ended | None = None
    ended_ms: int = 0


def look(run: TaskRun, run_dir: Path) -> Evidence:
    """Return how a run stands; its gate is open."""
    supervised = _is_supervised(run)  # before the files: what it wrote last is then seen
    process = program_facts.read_process(run_dir)
    if process is None or process.operation != run.operation:
        return Evidence(Stand.BEGINS if supervised else Stand.NEVER)
    ended = program_facts.read_exit(run_dir)
    if ended is not None and ended.operation == run.operation and ended.is_of(process):
        how = turns.Ended(ended.cause, ended.code, ended.signal, ended.began)
        return Evidence(Stand.OVER, process.pid, process.started_ms, how, ended.ended_ms)
    stand = Stand.RUNS if supervised or program_facts.supervised(process) else Stand.LOST
    return Evidence(stand, process.pid, process.started_ms)


def _is_supervised(run: TaskRun) -> bool:
    here = run.boot_id == processes.boot_id()
    return here and processes.is_alive(run.supervisor, run.supervisor_start)


class Outcome(NamedTuple):
    """What came of a run.

    Attributes:
        kind: the verdict.
        why: in one line; empty where the kind says all.
        said: the program's own words.
    """

    kind: turns.Kind
    why: str
    said: turns.Said


def judge(program: Program, folder: Path, ended: turns.Ended) -> Outcome:
    """Return what came of a run that is over.

    Args:
        folder: where its streams are.
    """
    said = program.said(folder / turns.OUT)
    err = turns.tail_text(folder / turns.ERR)
    kind, why = turns.judge(ended, said, err, speaks=program.speaks)
    return Outcome(kind, why, said._replace(text=turns.short(said.text)))
