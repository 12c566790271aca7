"""Run short commands while an agent's program is running."""

from __future__ import annotations

import contextlib
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

_LONGEST = 120.0


class Chore:
    """One command that runs.

    Attributes:
        status: its exit status once it has ended; -1 when it was ended, or a signal did it.
    """

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.pid = process.pid
        self.status: int | None = None
        self.deadline = time.monotonic() + seconds
        self._process = process

    def end(self, wait_status: int) -> None:
        """Record how the process ended."""
        self.status = os.WEXITSTATUS(wait_status) if os.WIFEXITED(wait_status) else -1
        self._process.returncode = self.status  # it is not to wait for it again

    def kill(self) -> None:
        """End the process and its child processes."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)


class Chores:
    """Those that run now. The supervisor reaps all its children, so it has to tell of these."""

    def __init__(self) -> None:
        self._running: dict[int, Chore] = {}

    def start(
        self,
        argv: list[bytes],
        env: Mapping[bytes, bytes],
        cwd: bytes = b"/",
        seconds: float = _LONGEST,
        stdin: int = -1,
        fds: Sequence[int] = (),
        stdout: int = -1,
    ) -> Chore | None:
        """Run a command in its own process group and session; None if it could not start.

        Args:
            cwd: not the worktree unless need be: it would look like somebody at work.
            stdin: the descriptor that it reads; none as it is.
            fds: further descriptors that it gets.
            stdout: the descriptor that it writes to; none as it is.
        """
        import subprocess  # the launcher's start must not wait for it

        nothing = subprocess.DEVNULL
        given = stdin if stdin >= 0 else nothing
        try:
            process = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=given,
                stdout=stdout if stdout >= 0 else nothing,
                stderr=nothing,
                start_new_session=True,
                pass_fds=fds,
            )
        except OSError:
            return None
        chore = self._running[process.pid] = Chore(process, seconds)
        return chore

    def reaped(self, pid: int, wait_status: int) -> None:
        """Note that a child of the supervisor has ended; maybe it was one of these."""
        chore = self._running.pop(pid, None)
        if chore is not None:
            chore.end(wait_status)

    def look(self) -> None:
        """End commands that take too long."""
        now = time.monotonic()
        for chore in self._running.values():
            if now > chore.deadline:
                chore.kill()
