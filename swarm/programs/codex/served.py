"""Whether Codex's own service holds the conversation of an agent.

A ``codex`` without settings on its command line joins the service when that runs, and its conversation goes on there
when the terminal is gone.  An agent is started with settings, so its conversation is its own; but its user may open it
elsewhere, and an agent that is any command of the user's may be a plain ``codex``.  Whoever holds a conversation has
its file open; Codex writes nothing else down about it.  Without ``/proc`` nothing is known.
"""

from __future__ import annotations

import glob
import os

from swarm.machine import processes
from swarm.machine.run_folder import serving
from swarm.machine.tail import Tail, mapping, text

#: Where the service writes itself down, below its home.
FOLDER, PID = "app-server-daemon", "daemon.pid"
#: The variable with the id of the conversation to which a command belongs.
THREAD = "CODEX_THREAD_ID"


def by(home: str, worktree: str, pid: int) -> int:
    """Return the process of the service that holds a conversation of a worktree; 0 when none does.

    Args:
        home: Codex's.
        worktree: where the agent works.
        pid: of the agent's own program, 0 when it has ended; it may hold another conversation itself.
    """
    for service, start in serving.named(os.path.join(home, FOLDER, PID)):
        if not processes.is_alive(service, start) or not any(_is_of(one, worktree) for one in _held(service)):
            continue
        mine = (pid, *(seen.pid for seen in processes.below(pid))) if pid else ()
        if not any(_held(one) for one in mine if one != service):
            return service
    return 0


def talks(home: str) -> dict[str, str]:
    """Return the variable by which each command names its conversation, with the pattern of the record of that."""
    return {THREAD: os.path.join(glob.escape(home), "sessions", "*", "*", "*", "rollout-*-{}.jsonl")}


def left_behind(home: str, worktree: str) -> list[str]:
    """Return in words the commands that the service has left behind, in conversations that took place in a worktree.

    They are named, and not ended: the user may have opened a conversation of their own there.
    """
    found: dict[int, str] = {}
    for pid, seen in processes.everything().items():
        words = b"" if seen.ended else processes.environment(pid)
        path, cwd = serving.conversation(words, talks(home)) if THREAD.encode() in words else ("", "")
        if path and serving.lies_in(cwd, worktree):
            found[pid] = path
    going_on = {path for pid in processes.everything() for path in _held(pid)} if found else set()
    return [
        f"{processes.name(pid)}, process {pid}, which Codex's own service left behind: look at it, then kill {pid}"
        for pid, path in found.items()
        if path not in going_on
    ]


def _held(pid: int) -> list[str]:
    """Return the conversations that a process has open; none if it has ended, or belongs to another user."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    opened = (_target(os.path.join(folder, name)) for name in names)
    return [path for path in opened if os.path.basename(path).startswith("rollout-") and path.endswith(".jsonl")]


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


def _is_of(path: str, worktree: str) -> bool:
    cwd = next((text(mapping(line.get("payload")).get("cwd")) for line in Tail(path).lines()), "")
    return serving.lies_in(cwd, worktree)
