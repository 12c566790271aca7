"""Start an agent program without a pane: its supervisor has no terminal, and its streams are files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm import supervisor
from swarm.kit import files
from swarm.machine import own, processes, records
from swarm.programs import turns
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from swarm.programs.values import LaunchSpec
    from swarm.project.world import World

LAUNCH = "launch.json"
#: In the folder of a run: which supervisor was started, and what it has to say itself.
STARTED, _OWN_WORDS = "supervisor.json", "supervisor.txt"
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST, _LARGEST_ENVIRONMENT = 4096, 64 << 20


class Unseen(NamedTuple):
    """How an agent is started for one turn without a pane.

    Attributes:
        operation: the one that starts it; it is known before.
        text: the prompt.
        resume, again: see ``turns.Turn``.
        folder: for its streams.
        timeout, grace: seconds.
        after: the command that is run at its end.
        task: which task that is; its program is told.
        env: the file with further variables for the program: no value stands in a step.
        id, talk: see ``turns.Turn``, and as JSON ``supervisor/gate.py``; empty: it is told its prompt alone.
    """

    operation: str
    text: str
    resume: bool
    again: bool
    folder: str
    timeout: float
    grace: float
    after: tuple[str, ...]
    task: str
    env: str
    id: str
    talk: str


class Started(NamedTuple):
    """A supervisor that was started.

    Attributes:
        start: when it began, as the machine counts.
    """

    pid: int
    start: int
    boot_id: str


def start(launch_file: Path, folder: Path) -> Started:
    """Start a supervisor in a session of its own, and write down which one.

    Args:
        folder: for that note, and for what the supervisor says itself.

    Raises:
        OSError
    """
    launcher = Path(supervisor.__file__).with_name("launcher.py")
    own_words = own.open(os.fspath(folder / _OWN_WORDS), _APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(launcher), str(launch_file)],
            stdin=subprocess.DEVNULL,
            stdout=own_words,
            stderr=own_words,
            start_new_session=True,
            cwd="/",
        )
    finally:
        os.close(own_words)
    found = Started(process.pid, processes.start_of(process.pid) or 0, processes.boot_id())
    # It outlives most callers, and shall not stay in the process table of the others.
    threading.Thread(target=process.wait, daemon=True, name="supervisor").start()
    files.write_atomic(folder / STARTED, json.dumps(found._asdict()).encode("ascii"), durable=False)
    return found


def started(folder: Path) -> Started | None:
    """Return the supervisor that was started for a run; None: there was none."""
    try:
        record = records.read_object(str(folder / STARTED), _LARGEST)
        return Started(int(record["pid"]), int(record["start"]), str(record["boot_id"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def variables(file: Path) -> dict[str, str]:
    """Return the variables of a private file; nothing without one."""
    try:
        found = records.read_object(str(file), _LARGEST_ENVIRONMENT)
    except (FileNotFoundError, ValueError):
        return {}
    return {str(name): str(value) for name, value in found.items()}


def streams(folder: Path, told: Path, made: LaunchSpec, interrupts: float) -> dict[str, Any]:
    """Return the part of a launch file that takes the place of a terminal.

    Args:
        folder: for what the program writes.
        told: the folder with the program's files.
        interrupts: see ``Program``.
    """
    return {
        "stdin": str(told / made.stdin) if made.stdin else os.devnull,
        "stdout": str(folder / turns.OUT),
        "stderr": str(folder / turns.ERR),
        "interrupt": interrupts,
    }


@dataclass(frozen=True, slots=True)
class StartUnseen(Step):
    """Start the supervisor of an agent; it waits at its gate, and ends there when the operation is taken back."""

    session: str
    agent: str
    folder: str

    def do(self, world: World) -> None:
        start(world.layout.run_folder(self.session, self.agent) / LAUNCH, Path(self.folder))

    def say(self) -> str:
        return f"start {self.agent} without a pane"
