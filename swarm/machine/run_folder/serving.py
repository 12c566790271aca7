"""Processes below an agent that serve more than the agent: its program's own service for a whole configuration folder.

Some programs put up one when somebody asks for a session in the background.  It becomes a child of the
program that was first, goes on without it, and holds the sessions of every terminal.  Each writes down its processes;
those are left alone when an agent ends, with all that is below them.  When such a service dies, its sessions become
orphans beside the agent's own; they are known by what their environment names: a session, or a conversation whose
record says where it takes place.
"""

from __future__ import annotations

import glob
import os

from swarm.machine import processes, records
from swarm.machine.run_folder import runfiles
from swarm.machine.tail import Tail, mapping, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_LIMIT = 16 << 20
#: What a service writes into the record of a conversation of its own, as the one who began it.
_SERVED = "vscode"


def left_alone(run_dir: str, own: int, among: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the processes (pid, start) that serve others too, of those an agent of this run folder may have begun.

    A process that is written down counts only when it leads a session of its own, as a service does, and is not the
    agent's program.  One of a background session counts wherever it is now.

    Args:
        own: the agent's program.
        among: the processes that would be ended.
    """
    record = runfiles.read(run_dir, runfiles.SERVES) or {}
    paths, marks = record.get("records"), record.get("marks")
    found: set[tuple[int, int]] = set()
    for path in paths if isinstance(paths, list) else ():
        for pid, start in named(str(path)):
            if pid != own and processes.is_alive(pid, start) and _leads(pid):
                found.add((pid, start))
                found.update((seen.pid, seen.start) for seen in processes.below(pid))
    known = marks if isinstance(marks, dict) else {}
    talks, folder = record.get("talks"), str(record.get("folder", ""))
    for one in among:
        if one not in found and one[0] != own:
            words = processes.environment(one[0])
            place = conversation(words, talks if isinstance(talks, dict) else {})[1] if folder else ""
            if _in_background(words, known) or (place and not lies_in(place, folder)):
                found.add(one)
    return found


def conversation(words: bytes, talks: Mapping[str, object]) -> tuple[str, str]:
    """Return the record of the conversation of a service to which a process belongs, and its folder.

    Args:
        words: the environment of the process.
        talks: the variables that name a conversation, each with the pattern of its record.

    Returns:
        Empty texts where it belongs to none.
    """
    for word in words.split(b"\0"):
        name, _, value = os.fsdecode(word).partition("=")
        if value and name in talks:
            for path in glob.iglob(str(talks[name]).replace("{}", glob.escape(value))):
                said = next((mapping(line.get("payload")) for line in Tail(path).lines()), {})
                if said.get("source") == _SERVED:
                    return path, text(said.get("cwd"))
    return "", ""


def lies_in(place: str, folder: str) -> bool:
    """Whether a path is a folder, or something in it."""
    return place == folder or place.startswith(f"{folder}/")


def _in_background(words: bytes, marks: Mapping[str, object]) -> bool:
    """Whether a process is of a background session other than the one in which the agent itself was started.

    Args:
        words: its environment.
        marks: the variables that only such sessions have, with their values for the agent itself.
    """
    for word in words.split(b"\0"):
        name, _, value = os.fsdecode(word).partition("=")
        if value and value != marks.get(name, value):
            return True
    return False


def named(path: str) -> Iterator[tuple[int, int]]:
    """Give each process that a service has written down, with its start."""
    try:
        record = records.read_object(path, _LIMIT)
    except (OSError, ValueError):
        return
    workers = record.get("workers")
    for one in (record, *(workers.values() if isinstance(workers, dict) else ())):
        pid = one.get("pid") if isinstance(one, dict) else None
        start = _start(one) if isinstance(pid, int) and pid > 1 else None
        if isinstance(pid, int) and start is not None:
            yield pid, start


def _start(one: dict[str, object]) -> int | None:
    """Return when a process began, as its service wrote it down, in one of two ways."""
    identity = one.get("processIdentity")
    began = identity.get("startTicks") if isinstance(identity, dict) else one.get("procStart")
    return int(began) if isinstance(began, int) or (isinstance(began, str) and began.isdecimal()) else None


def _leads(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False
