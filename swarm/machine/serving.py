"""Processes below an agent that serve more than the agent: its program's own service for a whole configuration folder.

Claude Code and Codex each put up one when somebody asks for a session in the background.  It becomes a child of the
program that was first, goes on without it, and holds the sessions of every terminal.  Each writes down its processes;
those are left alone when an agent ends, with all that is below them.  When such a service dies, its sessions become
orphans beside the agent's own; Claude Code's are known by what their environment names.
"""

from __future__ import annotations

import json
import os

from swarm.machine import processes, records, runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Where Codex's service writes itself down, below its home.
CODEX, CODEX_PID = "app-server-daemon", "daemon.pid"
#: What the processes of a background session of Claude Code have in their environment, and no others have.
_MARKS = ("CLAUDE_JOB_DIR", "CLAUDE_BG_SOCKET_TOKENS_PATH")
_LIMIT = 16 << 20


def files_of(environ: Mapping[str, str]) -> list[str]:
    """Return the files in which the services name their processes, for a program with this environment."""
    home = environ.get("HOME") or os.path.expanduser("~")
    claude = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    codex = os.path.join(environ.get("CODEX_HOME") or os.path.join(home, ".codex"), CODEX)
    return [
        os.path.join(claude, "daemon.lock"),
        os.path.join(claude, "daemon", "roster.json"),
        *(os.path.join(codex, name) for name in (CODEX_PID, "daemon-updater.pid")),
        *(os.path.join(codex, name) for name in ("app-server.pid", "app-server-updater.pid")),  # earlier versions
    ]


def note(run_dir: str, environ: Mapping[str, str]) -> None:
    """Write down by what the services of a program with this environment are known."""
    marks = {name: environ[name] for name in _MARKS if name in environ}
    runfiles.write(run_dir, runfiles.SERVES, {"records": files_of(environ), "marks": marks})


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
    found.update(one for one in among if one not in found and one[0] != own and _in_background(one[0], known))
    return found


def _in_background(pid: int, own: Mapping[str, object]) -> bool:
    """Whether a process is of a background session other than the one in which the agent itself was started.

    Args:
        own: how the agent's own environment names that.
    """
    for word in processes.read(f"/proc/{pid}/environ").split(b"\0"):
        name, _, value = os.fsdecode(word).partition("=")
        if name in _MARKS and value and value != own.get(name):
            return True
    return False


def named(path: str) -> Iterator[tuple[int, int]]:
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
