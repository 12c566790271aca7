"""Find an agent's processes by tree and by stamp, and end them all.

A process is (pid, start), so that a pid that the kernel has given to somebody else meanwhile is
never taken for ours.  The tree misses what left it (a daemon whose supervisor was killed); the
stamp, an environment variable that children inherit, finds that too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from swarm.machine import processes as proc
from swarm.machine.run_folder import program_facts, serving

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

Process = tuple[int, int]

_VARIABLE = "SWARM_AGENT_ID"
_AFTER_KILL = 2.0
_TELL_APART = 0.2  # two signals sent at once arrive as one
_MOST_ROUNDS = 5


def tree(pid: int) -> list[Process]:
    """Return a living process and its living descendants, parents first; empty without one.

    Below pid 1 is everybody's: of that there is no tree.
    """
    start = proc.start_of(pid) if pid > 1 else None
    if start is None:
        return []
    return [(pid, start), *((seen.pid, seen.start) for seen in proc.below(pid))]


def stamped(*stamps: str, variable: str = _VARIABLE, below: bool = False) -> list[Process]:
    """Return every living process that carries one of these stamps in its environment.

    Of other users' processes nothing can be seen.  The supervisor carries none: it is no part of the program.

    Args:
        below: so counts a stamp that goes on behind it with a slash.
    """
    wanted = [f"{variable}={stamp}" for stamp in stamps]
    if not proc.HAS_PROC:
        return list(dict.fromkeys(one for word in wanted for one in _stamped_by_ps(word, below=below)))
    words = [os.fsencode(word) for word in wanted]
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and _has(int(name), words, below=below):
            start = proc.start_of(int(name))
            if start is not None:
                found.append((int(name), start))
    return found


def _by_stamp(stamps: Sequence[str]) -> dict[str, list[Process]]:
    """Return the living processes that carry each of some stamps; every process is looked at once."""
    if not proc.HAS_PROC:
        return {stamp: stamped(stamp) for stamp in stamps if stamp}
    wanted = {os.fsencode(f"{_VARIABLE}={stamp}"): stamp for stamp in stamps if stamp}
    found: dict[str, list[Process]] = {stamp: [] for stamp in wanted.values()}
    for name in os.listdir("/proc") if wanted else ():
        words = set(proc.environment(int(name)).split(b"\0")) if name.isdigit() else set()
        for word in wanted.keys() & words:
            start = proc.start_of(int(name))
            if start is not None:
                found[wanted[word]].append((int(name), start))
    return found


def end(processes: Iterable[Process], grace: float) -> list[Process]:
    """End processes: ask each, wait until all are gone or the grace is over, kill the rest.

    Never this process and never pid 1; start times are compared again before every signal.

    Returns:
        Those that live on: of another user, or stuck in the kernel.
    """
    left = [one for one in processes if one[0] > 1 and one[0] != os.getpid()]
    for signum, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, _AFTER_KILL)):
        if signum == signal.SIGTERM and grace <= 0:
            continue
        for one in left:
            _send(one, signum)
            if signum == signal.SIGTERM:
                _send(one, signal.SIGCONT)  # one that is stopped would not hear it
        left = _left_of(left, patience)
    return left


def end_agents(agents: Sequence[tuple[str | Path, str]], grace: float) -> list[list[Process]]:
    """End the programs of several agents at once, and all their processes; their supervisors do it, if any.

    The supervisor is asked first, so that it can write down how the program ended; whatever it leaves
    behind, or everything when it is gone itself, is found by tree and stamp.

    The run folder is open to the agent, so its files are not believed: a supervisor is one that runs
    for this folder, a program is one that carries the stamp.  What serves more than the agent lives on.

    Args:
        agents: run folder and stamp of each.

    Returns:
        The processes that live on, of each.
    """
    from concurrent.futures import ThreadPoolExecutor  # each may take its time to end; together they take one

    if not agents:
        return []
    with ThreadPoolExecutor(min(len(agents), 32)) as pool:
        asked = list(pool.map(lambda one: _ask(one[0], grace), agents))
        marked = _by_stamp([stamp for _, stamp in agents])  # one look at all processes, when the supervisors are gone
        rest = [
            pool.submit(_end_rest, known, run_dir, stamp, left, marked.get(stamp, []))
            for (run_dir, stamp), (known, left) in zip(agents, asked, strict=True)
        ]
        return [one.result() for one in rest]


def _ask(run_dir: str | Path, grace: float) -> tuple[program_facts.Process | None, float]:
    """Have an agent's supervisor end it; return the program's facts, and the grace for its other processes."""
    known = program_facts.read_process(run_dir)
    supervisor = _supervisor(known, run_dir)
    gone = supervisor is not None and _end_supervisor(supervisor, grace)
    return known, 0.0 if gone else grace


def _end_rest(
    known: program_facts.Process | None, run_dir: str | Path, stamp: str, grace: float, marked: Sequence[Process]
) -> list[Process]:
    """End the processes that an agent's supervisor left behind; return the survivors.

    Args:
        marked: the processes that carry the stamp.
    """
    left: list[Process] = []
    found = _of_agent(known, run_dir, marked)
    for _ in range(_MOST_ROUNDS):  # one that starts others while it is being ended
        if not found or found == left:
            return found
        left = end(found, grace)
        grace = 0.0
        found = _of_agent(known, run_dir, stamped(stamp) if stamp else ())
    return found


def _supervisor(known: program_facts.Process | None, run_dir: str | Path) -> Process | None:
    """Return the living supervisor: the launcher that was given a file of this run folder."""
    if known is None or not program_facts.supervised(known):
        return None
    given = os.path.dirname(_last_word(known.supervisor_pid))
    if os.path.realpath(given) != os.path.realpath(os.fspath(run_dir)):
        return None
    return known.supervisor_pid, known.supervisor_start


def _end_supervisor(supervisor: Process, grace: float) -> bool:
    """Ask it to end its program; asked twice it kills without waiting for its own grace. Say whether it is gone."""
    for patience in (max(grace, _TELL_APART), _AFTER_KILL):
        _send(supervisor, signal.SIGTERM)
        if not _left_of([supervisor], patience):
            return True
    return False


def _of_agent(known: program_facts.Process | None, run_dir: str | Path, marked: Iterable[Process]) -> list[Process]:
    found = dict.fromkeys(marked)
    supervisor = _supervisor(known, run_dir)
    if supervisor is not None:
        found.update(dict.fromkeys(tree(supervisor[0])))
    elif known is not None and (known.pid, known.pid_start) in found:
        found.update(dict.fromkeys(tree(known.pid)))
    others = serving.left_alone(os.fspath(run_dir), known.pid if known is not None else 0, found)
    return [one for one in found if one[0] != os.getpid() and one not in others]


def _send(process: Process, signum: int) -> None:
    with contextlib.suppress(PermissionError):  # then it is among the survivors
        proc.send(*process, signum)


def _left_of(processes: list[Process], patience: float) -> list[Process]:
    """Wait until all are gone or the time is up; return those that are not."""
    deadline = time.monotonic() + patience
    pause = 0.005
    while left := [one for one in processes if proc.is_alive(*one)]:
        now = time.monotonic()
        if now >= deadline:
            break
        time.sleep(min(pause, deadline - now))
        pause = min(0.05, pause * 1.5)
    return left


def _has(pid: int, wanted: Sequence[bytes], *, below: bool) -> bool:
    words = set(proc.environment(pid).split(b"\0"))
    starts = tuple(word + b"/" for word in wanted) if below else ()
    return not words.isdisjoint(wanted) or (below and any(word.startswith(starts) for word in words))


def _last_word(pid: int) -> str:
    """Return the last argument of a launcher; nothing when it cannot be seen."""
    if not proc.HAS_PROC:
        return _ps("-ww", "-p", str(pid), "-o", "command=").rstrip("\n").rpartition("launcher.py ")[2]
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read().removesuffix(b"\0").rpartition(b"\0")[2])
    except OSError:
        return ""


def _stamped_by_ps(wanted: str, *, below: bool) -> list[Process]:
    """Find processes by a stamp in their environment, which ps shows after the command."""
    show_environment = "-axEww" if sys.platform == "darwin" else "axeww"
    lines = (line.split() for line in _ps(show_environment, "-o", "pid=,command=").splitlines())
    starts = f"{wanted}/" if below else wanted
    pids = [
        int(words[0])
        for words in lines
        if words and any(word == wanted or (below and word.startswith(starts)) for word in words[1:])
    ]
    return [(pid, start) for pid in pids if (start := proc.start_of(pid)) is not None]


def _ps(*arguments: str) -> str:
    try:
        done = subprocess.run(["ps", *arguments], capture_output=True, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(done.stdout)
