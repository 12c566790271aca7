"""Find the agent that a process belongs to.

    supervisor (launcher.py RUN/launch.json) ── program ── … ── this process

The answer is read from the machine, by going up from parent to parent until one of them is the supervisor that an
agent's ``process.json`` names; the folder must be a run folder of a repository, or of a swarm directory, whose record
lists the agent.  What
stands in the environment of this process decides nothing: an agent that changes it, or starts something without it,
is still below its own supervisor (which also takes in what lost its parent).

That no agent is found shows no person: see ``person.py``; ``callers/caller.py`` puts the two together.

Without ``/proc`` the environment only says in whose notes to look; the parents still have to be right.
"""

from __future__ import annotations

import os
import sys

from swarm.machine import processes, records, session_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LAUNCHER = b"launcher.py"
_LAUNCH_FILE = b"launch.json"
_VARIABLE = b"SWARM_RUN_DIR="
_FARTHEST = 256


class Identity:
    """An agent whose program this process belongs to.

    Attributes:
        program_pid: its program, whose end is the end of everything it holds; 0 when that is not known.
    """

    __slots__ = (
        "_generation",
        "agent",
        "boot",
        "program_pid",
        "program_start",
        "run_dir",
        "session",
        "supervisor_pid",
    )

    def __init__(self, run_dir: str, process: Mapping[str, object]) -> None:
        # <root>/.swarm/sessions/<session>/run/<agent>, or the same below a swarm directory
        self.run_dir = run_dir
        self.agent = run_dir.rpartition("/")[2]
        self.session = _above(run_dir, 2).rpartition("/")[2]
        self._generation: str | None = None
        self.supervisor_pid = _number(process, "supervisor_pid")
        self.program_pid = _number(process, "pid")
        self.program_start = _number(process, "pid_start")
        self.boot = str(process.get("boot_id"))

    @property
    def session_folder(self) -> str:
        """The folder of the session's record."""
        return _above(self.run_dir, 2)

    @property
    def state(self) -> str:
        """The ``.swarm`` folder of its repository, or the swarm directory that is its home."""
        return _above(self.run_dir, 4)

    @property
    def generation(self) -> str:
        """Which run of its name it is: the operation that made the agent."""
        if self._generation is None:
            self._generation = session_record.generation(session_record.read(self.session_folder), self.agent)
        return self._generation

    @property
    def address(self) -> str:
        """How messages call it."""
        return f"{self.agent}@{self.session}"


def whoami(environ: Mapping[str, str] | None = None, pid: int | None = None, state: str = "") -> Identity | None:
    """Return the agent to which a process belongs; None: no agent that can be seen, which makes it no person yet.

    Args:
        environ: where to look first when the machine cannot show the environment of others.
        pid: of which process; default: this one.
        state: a ``.swarm`` folder whose agents come first, where agents of several repositories run in each other.
    """
    if environ is None:
        environ = os.environ
    found = _believed(_all(environ.get("SWARM_RUN_DIR", ""), os.getpid() if pid is None else pid))
    mine = (who for who in found if state and _same_folder(who.state, state))
    return next(mine, found[0] if found else None)


def of_run_folder(run_dir: str) -> Identity | None:
    """Return the agent of a run folder while its supervisor or its program runs."""
    process = records.read(f"{run_dir}/process.json")
    if process is None or process.get("boot_id") != processes.boot_id() or not is_run_folder(run_dir):
        return None
    named = ((_number(process, pid), _number(process, start)) for pid, start in (_SUPERVISOR, _PROGRAM))
    alive = any(pid > 0 and processes.is_alive(pid, start) for pid, start in named)
    return Identity(run_dir, process) if alive else None


def _all(hint: str, one: int) -> list[Identity]:
    """Return every agent that a process runs below, the nearest first."""
    found: list[Identity] = []
    boot = ""
    for _ in range(_FARTHEST):
        seen = processes.look(one)
        if seen is None or one <= 1:
            break
        for run_dir, keys in _candidates(one, hint):
            process = records.read(f"{run_dir}/process.json")
            if process is None or not _is_named(process, keys, one, seen.start) or not is_run_folder(run_dir):
                continue
            boot = boot or processes.boot_id()
            if process.get("boot_id") == boot:
                found.append(Identity(run_dir, process))
                break
        one = seen.ppid
    return found


def _believed(found: list[Identity]) -> list[Identity]:
    """Leave out an agent below another of its repository whose session that other one did not start.

    So nobody becomes a colleague by starting a supervisor with the colleague's folder.
    """
    kept: list[Identity] = []
    for number, who in enumerate(found):
        above = found[number + 1] if number + 1 < len(found) else None
        if above is None or who.run_dir == above.run_dir or not _same_folder(who.state, above.state):
            kept.append(who)
            continue
        parent = session_record.read(who.session_folder).get("parent")
        if isinstance(parent, dict) and (parent.get("agent"), parent.get("session")) == (above.agent, above.session):
            kept.append(who)
    return kept


def is_run_folder(run_dir: str) -> bool:
    """Whether this is the run folder of an agent: ``<root>/.swarm/sessions/<session>/run/<agent>``.

    Outside of a repository it is below a swarm directory: ``<home>/sessions/<session>/run/<agent>``.
    """
    parts = run_dir.rsplit("/", 5)
    if len(parts) != 6 or (parts[2], parts[4]) != ("sessions", "run"):
        return False
    in_repository = parts[1] == records.STATE and os.path.exists(f"{parts[0]}/.git")
    if not in_repository and not records.is_home(_above(run_dir, 4)):
        return False
    return any(one["name"] == parts[5] for one in session_record.agents(session_record.read(_above(run_dir, 2))))


_SUPERVISOR = ("supervisor_pid", "supervisor_start")
_PROGRAM = ("pid", "pid_start")


def _candidates(pid: int, hint: str) -> list[tuple[str, tuple[str, str]]]:
    """Return the run folders to which a process may belong, each with the identity that it must have there.

    A supervisor is known by its argument. Of programs, only one whose supervisor is dead is known by its environment:
    all others are below theirs.
    """
    if not processes.HAS_PROC:
        return [(hint, _SUPERVISOR)] if hint else []
    words = processes.read(f"/proc/{pid}/cmdline").rstrip(b"\0").split(b"\0")
    if len(words) > 1 and words[-1].endswith(_LAUNCH_FILE) and words[-2].rpartition(b"/")[2] == _LAUNCHER:
        return [(_text(words[-1].rpartition(b"/")[0]), _SUPERVISOR)]
    data = processes.environment(pid)
    at = data.find(_VARIABLE)
    while at > 0 and data[at - 1]:  # only the end of another variable's name
        at = data.find(_VARIABLE, at + 1)
    return [(_text(data[at + len(_VARIABLE) :].partition(b"\0")[0]), _PROGRAM)] if at >= 0 else []


def _is_named(process: Mapping[str, object], keys: tuple[str, str], pid: int, start: int) -> bool:
    if (process.get(keys[0]), process.get(keys[1])) != (pid, start):
        return False
    above, began = _number(process, _SUPERVISOR[0]), _number(process, _SUPERVISOR[1])
    return keys == _SUPERVISOR or not processes.is_alive(above, began)


def absence(run_dir: str) -> str:
    """Return why the agent of a run folder does not read its messages now; empty when it runs, or is about to."""
    try:
        os.stat(f"{run_dir}/launch.json")
        return ""
    except OSError:
        pass
    process = records.read(f"{run_dir}/process.json")
    if process is None:
        return "it was never started"
    pid, start = process.get("pid"), process.get("pid_start")
    if isinstance(pid, int) and processes.start_of(pid) == start and process.get("boot_id") == processes.boot_id():
        return "it is in print mode and gets no notice of messages" if process.get("deaf") is True else ""
    return "it does not run"


def _above(path: str, levels: int) -> str:
    return path.rsplit("/", levels)[0]


def _same_folder(one: str, other: str) -> bool:
    try:
        a, b = os.stat(one), os.stat(other)
    except OSError:
        return False
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def _text(name: bytes) -> str:
    """Return a path as text, as ``os.fsdecode`` does."""
    return name.decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def _number(process: Mapping[str, object], name: str) -> int:
    value = process.get(name)
    return value if isinstance(value, int) else 0
