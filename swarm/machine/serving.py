"""Processes below an agent that serve more than the agent: its program's own service for a whole configuration folder.

Claude Code and Codex each put up one when somebody asks for a session in the background.  It becomes a child of the
program that was first, goes on without it, and holds the sessions of every terminal.  Each writes down its processes;
those are left alone when an agent ends, with all that is below them.
"""

from __future__ import annotations

import json
import os

from swarm.machine import processes, records, runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LIMIT = 16 << 20


def files_of(environ: Mapping[str, str]) -> list[str]:
    """Return the files in which the services name their processes, for a program with this environment."""
    home = environ.get("HOME") or os.path.expanduser("~")
    claude = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    codex = os.path.join(environ.get("CODEX_HOME") or os.path.join(home, ".codex"), "app-server-daemon")
    return [
        os.path.join(claude, "daemon.lock"),
        os.path.join(claude, "daemon", "roster.json"),
        os.path.join(codex, "app-server.pid"),
        os.path.join(codex, "app-server-updater.pid"),
    ]


def left_alone(run_dir: str, own: int) -> set[tuple[int, int]]:
    """Return the processes (pid, start) that serve others too, of those an agent of this run folder may have begun.

    A process counts only when it leads a session of its own, as a service does, and is not the agent's program.

    Args:
        own: the agent's program.
    """
    paths = (runfiles.read(run_dir, runfiles.SERVES) or {}).get("records")
    found: set[tuple[int, int]] = set()
    for path in paths if isinstance(paths, list) else ():
        for pid, start in _named(str(path)):
            if pid != own and processes.is_alive(pid, start) and _leads(pid):
                found.add((pid, start))
                found.update((seen.pid, seen.start) for seen in processes.below(pid))
    return found


def _named(path: str) -> Iterator[tuple[int, int]]:
    """Give each process that a service has written down, with its start."""
    try:
        record = json.loads(records.read_bytes(path, _LIMIT))
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(record, dict):
        return
    workers = record.get("workers")
    for one in (record, *(workers.values() if isinstance(workers, dict) else ())):
        pid = one.get("pid") if isinstance(one, dict) else None
        start = _start(one) if isinstance(pid, int) and pid > 1 else None
        if isinstance(pid, int) and start is not None:
            yield pid, start


def _start(one: dict[str, object]) -> int | None:
    """Return when a process began, as its service wrote it down: Claude Code's way, or Codex's."""
    identity = one.get("processIdentity")
    began = identity.get("startTicks") if isinstance(identity, dict) else one.get("procStart")
    return int(began) if isinstance(began, int) or (isinstance(began, str) and began.isdecimal()) else None


def _leads(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False
