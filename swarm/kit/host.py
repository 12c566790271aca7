"""Find the processes that live in a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.kit.commandline import STAMP
from swarm.machine import processes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path


def processes_in(folders: Sequence[Path], but: Collection[int] = ()) -> dict[Path, tuple[str, ...]]:
    """Return, per folder, the processes that live in it: by working directory or by an open file.

    Each is named as ``program (pid N)``.  Where the system cannot tell, the answer is empty.  A server that
    a worktree's setup started is no sign of work: it goes with the worktree.

    Args:
        but: these, and everything that they started, are left out.
    """
    found: dict[Path, list[str]] = {folder: [] for folder in folders}
    below = {f"{folder}/": folder for folder in folders}
    prefixes = tuple(below)
    left_out = {*but, *(seen.pid for pid in but for seen in processes.below(pid))}
    for pid in _pids() if folders else ():
        if pid in left_out:
            continue
        for place in _places(pid):
            inside = f"{place}/"
            if inside.startswith(prefixes) and not _is_of_a_setup(pid):
                hit = next(folder for prefix, folder in below.items() if inside.startswith(prefix))
                found[hit].append(f"{processes.name(pid)} (pid {pid})")
                break
    return {folder: tuple(names) for folder, names in found.items()}


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _places(pid: int) -> Iterator[str]:
    """Give the folders and files a process holds on to; of other users' processes nothing can be seen."""
    try:
        yield os.readlink(f"/proc/{pid}/cwd")
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for fd in descriptors:
        try:
            place = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if place.startswith("/"):
            yield place


def _is_of_a_setup(pid: int) -> bool:
    return any(word.startswith(f"{STAMP}=".encode("ascii")) for word in processes.environment(pid).split(b"\0"))
