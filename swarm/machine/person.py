"""Whether a person runs a process, this one or one that asks a server, shown by the machine.

        init ── sshd, a terminal program, tmux … ── shell ── … ── this process
                                                      └── its terminal

A person is shown by all of these together; what cannot be seen is not shown:

1. no supervisor of an agent is among the ancestors, also of those that ended: a supervisor lowers a limit that
   the kernel uses for nothing any more, it is inherited, and an ordinary user cannot raise it again;
2. this process shares the pid, user and mount namespaces of pid 1, and ``/proc`` shows it under its own pid;
3. its parents, and those of the one who began its session, lead up to pid 1 without a gap;
4. it has a controlling terminal, which is no agent's pane.

Who asks also has to ask ``whoami``: it finds agents whose supervisors lived before they lowered the limit.
"""

from __future__ import annotations

import os
import sys

from swarm.machine import processes

_RLIMIT_LOCKS = 10  # of Linux; its manual page: only early 2.4 kernels looked at it
_LOWERED = 1 << 40
_NAMESPACES = ("pid", "user", "mnt")
_SESSION, _TERMINAL = 3, 4  # in /proc/<pid>/stat, counted from the state
_FARTHEST = 256


def mark_descendants() -> None:
    """Let all that this process starts be known as started by it, for ever (Linux)."""
    if sys.platform != "linux":
        return
    import resource

    hard = resource.getrlimit(_RLIMIT_LOCKS)[1]
    if hard == resource.RLIM_INFINITY or hard > _LOWERED:
        resource.setrlimit(_RLIMIT_LOCKS, (_LOWERED, _LOWERED))


def descends_from_agent() -> bool:
    """Whether a supervisor was among the ancestors of this process (Linux)."""
    if sys.platform != "linux":
        return False
    import resource

    return resource.getrlimit(_RLIMIT_LOCKS)[1] != resource.RLIM_INFINITY


def is_below_agent(pid: int) -> bool:
    """Whether a supervisor was among the ancestors of another process (Linux); also where that cannot be read."""
    if sys.platform != "linux":
        return False
    words = processes.read(f"/proc/{pid}/limits").partition(b"Max file locks")[2].split(None, 2)
    return len(words) < 2 or words[1] != b"unlimited"


def doubt(pid: int | None = None) -> str:
    """Return why a process is not shown to be a person's; empty when it is.

    Args:
        pid: default: this process.
    """
    if descends_from_agent() if pid is None else is_below_agent(pid):
        return "it was started by an agent, or the hard limit on file locks is set (ulimit -Hx)"
    if sys.platform != "linux":
        here = "" if _has_terminal() else _NO_TERMINAL
        return here if pid is None else "this machine does not show what process it is"
    try:
        return _doubt_by_proc(os.getpid() if pid is None else pid)
    except (OSError, ValueError, IndexError):
        return "/proc cannot be read"


_NO_TERMINAL = "it has no terminal"


def _doubt_by_proc(pid: int) -> str:
    if not processes.HAS_PROC or os.readlink("/proc/self") != str(os.getpid()):
        return "/proc does not show it"
    if not _shares_namespaces_with_init(pid):
        return "it runs in namespaces of its own"
    words = _stat(pid)
    if words[_TERMINAL] == b"0":
        return _NO_TERMINAL
    if not (_leads_to_init(pid) and _leads_to_init(int(words[_SESSION]))):
        return "not all of its parents can be seen"
    return ""


def _stat(pid: int) -> list[bytes]:
    return processes.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _shares_namespaces_with_init(pid: int) -> bool:
    try:
        return all(os.readlink(f"/proc/1/ns/{one}") == os.readlink(f"/proc/{pid}/ns/{one}") for one in _NAMESPACES)
    except PermissionError:
        pass  # init is another user's: by what everybody may read of it
    maps = all(
        processes.read(f"/proc/1/{one}") == processes.read(f"/proc/{pid}/{one}") != b""
        for one in ("uid_map", "gid_map")
    )
    mounts = _mounts(pid)
    return _knows_one_pid(pid) and maps and bool(mounts) and mounts <= _mounts(1)


def _knows_one_pid(pid: int) -> bool:
    """Whether a process has the one pid that ``/proc`` shows, and none in a pid namespace below."""
    status = processes.read(f"/proc/{pid}/status")
    return len(status.partition(b"\nNSpid:")[2].partition(b"\n")[0].split()) == 1


def _mounts(pid: int) -> set[bytes]:
    """Return the kernel's numbers of all mounts that a process sees; each mount namespace has its own."""
    return {line.split(None, 1)[0] for line in processes.read(f"/proc/{pid}/mountinfo").splitlines()}


def _leads_to_init(pid: int) -> bool:
    for _ in range(_FARTHEST):
        if pid == 1:
            return True
        seen = processes.look(pid) if pid > 0 else None
        if seen is None:
            return False
        if seen.ppid == 0:  # put into a container from outside, as `docker exec` does
            return True
        pid = seen.ppid
    return False


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
