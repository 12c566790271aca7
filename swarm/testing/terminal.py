"""A program in a terminal of its own, as in a pane: session leader, controlling terminal, a size."""

from __future__ import annotations

import fcntl
import os
import pickle
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import warnings
from typing import TYPE_CHECKING

from swarm.machine import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

DEADLINE = 60.0
#: Makes standard input the controlling terminal; Popen has made the session.
_SHIM = "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


def wait_for(predicate: Callable[[], object], what: str, deadline: float = DEADLINE) -> None:
    """Wait until a condition holds; after the deadline fail with the words *what*."""
    end = time.monotonic() + deadline
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline:g} s: {what}")
        time.sleep(0.005)


class Pane:
    """Runs a program in a pseudo terminal.

    Attributes:
        pid: the program.
        text: everything it has written so far.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        columns: int = 80,
        rows: int = 24,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(slave)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SHIM, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self._slave = slave  # kept open: what was written last can still be read
        self.pid = self._process.pid
        self.text = ""
        self._below: list[processes.Seen] = []

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def see(self, words: str, deadline: float = DEADLINE) -> str:
        """Wait until words are on the screen; return all that was written up to now."""
        self._until(lambda: words in self._read(), f"{words!r} on the screen", deadline)
        return self.text

    def forget(self) -> None:
        """Ignore all output so far."""
        self._read()
        self.text = ""

    def ended(self, deadline: float = DEADLINE) -> int:
        """Wait for the end; return the exit status, negative for a signal."""
        self._until(lambda: self._read() is not None and self._process.poll() is not None, "the end", deadline)
        self._read()
        return self._process.returncode

    def is_running(self) -> bool:
        """Whether the program has not ended."""
        return self._process.poll() is None

    def send(self, signum: int) -> None:
        """Signal the program."""
        self._process.send_signal(signum)

    def hang_up(self) -> None:
        """Take the terminal away, as when a pane is killed."""
        os.close(self._slave)
        os.close(self._master)
        self._master = self._slave = -1

    def modes_now(self) -> list[object]:
        """Return the terminal's modes."""
        return list(termios.tcgetattr(self._slave))

    def close(self) -> None:
        """End the program and all that it started."""
        everyone = processes.below(self.pid)
        if self.is_running():
            self._process.kill()
        for seen in everyone:
            processes.send(seen.pid, seen.start, signal.SIGKILL)
        self._process.wait(DEADLINE)
        if self._master >= 0:
            self.hang_up()

    def _read(self) -> str:
        while self._master >= 0 and select.select([self._master], [], [], 0)[0]:
            self.text += os.read(self._master, 65536).decode("utf-8", "replace")
        return self.text

    def _until(self, predicate: Callable[[], object], what: str, deadline: float) -> None:
        try:
            wait_for(predicate, what, deadline)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.text}") from None


def at_terminal(act: Callable[[], Any]) -> Any:
    """Call a function in a child process with a terminal of its own; return its result or raise its error.

    So a test is what swarm takes for a person; not below an agent's pane, where nobody is one.
    """
    return _in_child(act, pty.fork)


def without_terminal(act: Callable[[], Any]) -> Any:
    """Call a function in a child process without a terminal; return its result or raise its error."""

    def apart() -> Any:
        os.setsid()
        return act()

    return _in_child(apart, lambda: (os.fork(), -1))


def _in_child(act: Callable[[], Any], fork: Callable[[], tuple[int, int]]) -> Any:
    result_read, result_write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child uses none
        pid, master = fork()
    if pid == 0:
        _do_and_tell(act, result_write)
    os.close(result_write)
    told = b""
    ends = [result_read] + [master] * (master >= 0)
    while result_read in ends:
        for fd in select.select(ends, [], [])[0]:
            piece = _read_some(fd)
            told += piece if fd == result_read else b""
            if not piece:
                ends.remove(fd)
    os.close(result_read)
    if master >= 0:
        os.close(master)
    os.waitpid(pid, 0)
    good, value = pickle.loads(told)  # our own child's
    if not good:
        raise value
    return value


def _read_some(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 16)
    except OSError:  # a terminal whose other side is closed
        return b""


def _do_and_tell(act: Callable[[], Any], result: int) -> None:
    """In the child: never returns."""
    try:
        try:
            told = pickle.dumps((True, act()))
        except BaseException as error:  # noqa: BLE001  # the parent raises it
            told = pickle.dumps((False, error))
        with os.fdopen(result, "wb") as file:
            file.write(told)
    finally:
        os._exit(0)
