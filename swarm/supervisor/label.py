"""Refresh the state shown in tmux after a change.

One process at a time does that for a whole session, and it shows every agent: the supervisors settle
by a lock file who starts it, and by the file's time whether it has been done since.

A program that says what it is doing in a file of its own is known by the time of that file.  One that says nothing
is judged by its screen; what it wrote is seen by the time of its terminal, which the kernel keeps in steps of eight
seconds.
"""

from __future__ import annotations

import contextlib
import os
import time

from swarm.machine import locks, own
from swarm.machine.inbox_watch import SCAN_EVERY
from swarm.machine.run_folder import runfiles

#: Beside the run folders of a session: its time is that of the last look at all of them; empty: there was none.
LOCK = "label.lock"
#: What tells of a new state when it changes.
_FILES = (runfiles.STATE, runfiles.PROCESS, runfiles.EXIT, runfiles.REVIEWING)
#: Between two looks of one supervisor: a program may say something new a hundred times a second.
_PAUSE = 1.0
#: How long the last look waits for its turn.
_PATIENCE = 60.0
_TURN = 0.05
_STEP_NS = 8 * 10**9
#: The kernel gives some files the exact time and others that of its last tick: of two so near none is the later one.
_TICK_NS = 20_000_000
#: So long after the program said something new, one looks once more: why a turn ended its hooks tell a moment later.
_SETTLED_NS = 3 * 10**9


class Label:
    """The label of one program's pane.

    Args:
        run_dir: where it says its state; the lock is in the folder above.
        argv: the command that shows the states of all; empty: nobody does.
        env: its environment.
        terminal: that of a program that is judged by what it shows; empty for any other.
    """

    def __init__(self, run_dir: str, argv: list[bytes], env: dict[bytes, bytes], *, terminal: str = "") -> None:
        self._watched = [os.path.join(run_dir, name) for name in _FILES]
        self._lock = os.path.join(os.path.dirname(run_dir), LOCK)
        self._argv = argv
        self._env = env
        self._shown = 0
        self._next = 0.0
        self._terminal = terminal
        self._step = self._step_before = 0
        self._says = ""

    def also(self, says: str) -> None:
        """Also watch the program's own state file; empty without one."""
        self._says = says

    def look(self) -> float:
        """Have the states shown if this one changed since; return after how many seconds to look again."""
        left = self._next - time.monotonic()
        if left > 0:
            return left
        self._next = time.monotonic() + _PAUSE
        return SCAN_EVERY if self._is_shown() else _PAUSE

    def last_look(self) -> None:
        """Show and report the end; a refresh that began before the end does not know of it.

        Where one has to wait for one's turn a process of its own does that: the pane shall be free at once.
        """
        self._shown = 0  # the end may bear the same time as the start
        if self._is_shown() or os.fork():
            return
        try:
            _leave_terminal()
            deadline = time.monotonic() + _PATIENCE
            while not self._is_shown() and time.monotonic() < deadline:
                time.sleep(_TURN)
        finally:
            os._exit(0)

    def _is_shown(self) -> bool:
        changed = max((_time_of(path) for path in self._watched), default=0)
        said = _time_of(self._says) if self._says else 0
        if said:
            changed = max(changed, said + _SETTLED_NS if said + _SETTLED_NS < time.time_ns() else said)
        elif self._terminal:  # before it says anything it may show a question
            changed = max(changed, self._written())
        if self._argv and changed > self._shown:
            with contextlib.suppress(OSError):
                if not self._show(changed):
                    return False
                self._shown = changed
        return True

    def _written(self) -> int:
        """Return the end of the last step of time that is over, and in which the program wrote something.

        A program that writes without a pause, as for a clock on its screen, is looked at once for each step.
        """
        end = _time_of(self._terminal) // _STEP_NS * _STEP_NS + _STEP_NS
        if end > self._step:
            self._step, self._step_before = end, self._step
        return end if end < time.time_ns() else self._step_before

    def _show(self, changed: int) -> bool:
        import subprocess  # the launcher's start must not wait for it

        if looked_at(self._lock) > changed + _TICK_NS:
            return True  # a refresh that began after that covers all of us
        fd = own.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if not locks.try_lock(fd):
                return False
            if looked_at(self._lock) > changed + _TICK_NS:
                return True
            note_look(fd, time.time_ns())
            subprocess.Popen(
                self._argv,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",  # in the worktree it would look like a process at work
                pass_fds=(fd,),  # it keeps the lock until it is done
            )
        finally:
            os.close(fd)
        return True


def _leave_terminal() -> None:
    """Be no part of the pane any more."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)


def looked_at(path: str) -> int:
    """Return when the last look at a session began, by the path of its lock; 0: there was none.

    A file that was only just made has a time, too.
    """
    try:
        info = os.stat(path)
    except OSError:
        return 0
    return info.st_mtime_ns if info.st_size else 0


def note_look(fd: int, began_ns: int) -> None:
    """Note when a look at a session began, in its open lock."""
    os.ftruncate(fd, 1)
    os.utime(fd, ns=(began_ns, began_ns))


def own_terminal() -> str:
    """Return the path of this process's terminal; empty without one."""
    try:
        return os.ttyname(0)
    except OSError:
        return ""


def _time_of(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
