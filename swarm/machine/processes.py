"""Processes, identified by pid and start time.

``start`` is field 22 of ``/proc/<pid>/stat`` (clock ticks since boot); without ``/proc`` it is the
second at which ``ps`` says that the process began.
"""

from __future__ import annotations

import os
import time


def _is_there(path: str) -> bool:
    try:
        os.stat(path)
    except OSError:
        return False
    return True


HAS_PROC = _is_there("/proc/self/stat")
_PS_COLUMNS = "pid=,ppid=,stat=,lstart="
_ENDED = ("Z", "X", "x")
_PIECE = 1 << 16
_LOOKS, _MOMENT = 50, 0.002
_KERNEL = 2  # the parent of the kernel's own threads, which have no environment


class Seen:
    """A process as it was a moment ago.

    Attributes:
        ended: only its exit status is left.
    """

    __slots__ = ("ended", "pid", "ppid", "start")

    def __init__(self, pid: int, ppid: int, start: int, state: str) -> None:
        self.pid = pid
        self.ppid = ppid
        self.start = start
        self.ended = state[:1] in _ENDED


def read(path: str) -> bytes:
    """Return the content of a file; nothing where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    data = b""
    try:
        while piece := os.read(fd, _PIECE):
            data += piece
    except OSError:
        return b""
    finally:
        os.close(fd)
    return data


def look(pid: int) -> Seen | None:
    """Return the process with this pid, or None."""
    if not HAS_PROC:
        return _ps("-p", str(pid)).get(pid)
    data = read(f"/proc/{pid}/stat")
    words = data.rpartition(b")")[2].split()  # the name before it may hold anything
    try:
        return Seen(pid, int(words[1]), int(words[19]), words[0].decode("ascii"))
    except (IndexError, ValueError):
        return None


def environment(pid: int) -> bytes:
    """Return a process's environment, with a NUL behind each variable; nothing where it cannot be seen.

    While the kernel replaces the program of a process it shows neither environment nor command line: then look again.
    """
    for _ in range(_LOOKS):
        if found := read(f"/proc/{pid}/environ"):
            return found
        seen = look(pid)
        if seen is None or seen.ended or _KERNEL in (seen.pid, seen.ppid):
            return b""
        if read(f"/proc/{pid}/cmdline"):  # it has none; or its new program began between the two looks
            return read(f"/proc/{pid}/environ")
        time.sleep(_MOMENT)
    return b""


def name(pid: int) -> str:
    """Return the name of a process's program, for people."""
    return read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip() or "process"


def everything() -> dict[int, Seen]:
    """Return every process by its pid."""
    if not HAS_PROC:
        return _ps("-ax")
    seen = (look(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {one.pid: one for one in seen if one is not None}


def start_of(pid: int) -> int | None:
    """Return when a living process began, None when it has ended."""
    seen = look(pid) if pid > 0 else None
    return None if seen is None or seen.ended else seen.start


def is_alive(pid: int, start: int) -> bool:
    """Whether the process of this pid is still the one that began then."""
    return start_of(pid) == start


def below(pid: int) -> list[Seen]:
    """Return the living processes below *pid*, parents before their children."""
    children: dict[int, list[Seen]] = {}
    for one in everything().values():
        children.setdefault(one.ppid, []).append(one)
    found: list[Seen] = []
    parents = [pid]
    known = {pid}
    while parents:
        new = [child for parent in parents for child in children.get(parent, ()) if child.pid not in known]
        known.update(child.pid for child in new)
        found += [child for child in new if not child.ended]
        parents = [child.pid for child in new]
    return found


#: The number that a program has inside of its box: bubblewrap is the first process there.
NUMBER_IN_BOX = 2


def in_box(pid: int) -> Seen | None:
    """Return the program in a box, from the outer one of bubblewrap's two processes; None: it has not begun."""
    for _ in range(2):
        words = read(f"/proc/{pid}/task/{pid}/children").split()
        if not words:
            return None
        pid = int(words[0])
    return look(pid)


def send(pid: int, start: int, signum: int) -> bool:
    """Signal exactly this process; False when it has ended, even if its pid was reused.

    Raises:
        PermissionError: it is another user's.
    """
    if pid <= 1 or pid == os.getpid():
        return False
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):  # no such thing here, or no descriptor left
        return is_alive(pid, start) and _kill(pid, signum)
    try:
        import signal  # most callers only look

        # The descriptor holds on to the process: if the start is right now, the signal goes to the right one.
        if not is_alive(pid, start):
            return False
        signal.pidfd_send_signal(fd, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def _kill(pid: int, signum: int) -> bool:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return False
    return True


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (Linux)."""
    if not HAS_PROC:
        return
    import ctypes

    set_child_subreaper = 36
    try:
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
    except (OSError, AttributeError):
        return  # then orphans go to init, and only their stamp names them


def boot_id() -> str:
    """Return a name of the running boot; pids of another boot mean nothing."""
    boot = read("/proc/sys/kernel/random/boot_id").decode("ascii").strip()
    return boot or _output("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid").strip() or "unknown"


# --- without /proc ------------------------------------------------------------------------------


def _ps(*which: str) -> dict[int, Seen]:
    found = (_ps_line(line) for line in _output("ps", *which, "-o", _PS_COLUMNS).splitlines())
    return {one.pid: one for one in found if one is not None}


def _ps_line(line: str) -> Seen | None:
    import time

    words = line.split()
    try:
        began = time.strptime(" ".join(words[3:8]), "%a %b %d %H:%M:%S %Y")
        return Seen(int(words[0]), int(words[1]), int(time.mktime(began)), words[2])
    except (IndexError, ValueError):
        return None


def _output(*argv: str) -> str:
    import subprocess
    from os import environ

    environment = {**environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=5, env=environment)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def ignores(pid: int, signum: int) -> bool:
    """Whether a process ignores a signal; True where the machine does not tell."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file if b":" in line)
        return bool(int(fields[b"SigIgn"], 16) >> (signum - 1) & 1)
    except (OSError, KeyError, ValueError):
        return not HAS_PROC
