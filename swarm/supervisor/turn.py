"""One turn of a program without a terminal: its streams are files, its time is limited, and its end is told."""

from __future__ import annotations

import os
import signal
import time

from swarm.machine import own, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.supervisor.chores import Chores
    from swarm.supervisor.gate import Launch
    from swarm.supervisor.talk import Talk

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK_AGAIN = 0.05
_PIECE = 1 << 20
_NO_LIMIT = 60.0


class Turn:
    """The turn of one program.

    Attributes:
        over: why it is to be ended: its time is up; empty: it is not.
    """

    def __init__(self, launch: Launch, chores: Chores) -> None:
        self.over = ""
        self._talk = _talk(launch, chores)
        self._launch = launch
        self._ends = time.monotonic() + launch.timeout if launch.timeout else None

    def open_streams(self) -> None:
        """In the child that becomes the program: put its files in the place of the terminal.

        Raises:
            OSError
        """
        for number, path in enumerate(self._launch.streams):
            if path == os.devnull:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            else:
                fd = own.open(path, _WRITE if number else _READ, 0o600)
                if self._launch.boxed and not number:
                    fd = _copied(fd)
            os.dup2(fd, number)
            os.close(fd)
        if self._talk is not None:
            os.dup2(self._talk.hears, 0)

    def watch(self) -> tuple[int, ...]:
        """Return the descriptors that tell of something to look at."""
        return self._talk.watch() if self._talk is not None else ()

    def look(self) -> float:
        """Return after how many seconds to look again."""
        soon = self._talk.look() if self._talk is not None else _NO_LIMIT
        if self._ends is None:
            return soon
        left = self._ends - time.monotonic()
        if left <= 0:
            self.over = f"out of its time of {self._launch.timeout:g} s"
        return min(soon, max(0.0, left))

    def interrupt(
        self, program: tuple[int, int], is_running: Callable[[], bool], wait: Callable[[float], None]
    ) -> None:
        """Ask a program that is to be ended for its last words: what it has used so far, for one."""
        ends = time.monotonic() + self._launch.interrupt
        if not self._launch.interrupt or not is_running():
            return
        try:
            processes.send(*program, signal.SIGINT)
            processes.send(*program, signal.SIGCONT)  # one that is stopped would not hear it
        except PermissionError:
            return
        while is_running() and (left := ends - time.monotonic()) > 0:
            wait(min(_LOOK_AGAIN, left))

    def tell_end(self) -> None:
        """Run the command for the end, in a session of its own; the supervisor does not wait for it."""
        if not self._launch.after:
            return
        import subprocess  # the launcher's start must not wait for it

        nothing = subprocess.DEVNULL
        try:
            subprocess.Popen(
                self._launch.after,
                env=self._launch.label_env,
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                start_new_session=True,
                cwd="/",
            )
        except OSError:
            return  # whoever looks next settles it


def _talk(launch: Launch, chores: Chores) -> Talk | None:
    """Return what talks with the program meanwhile; None where it is told everything at its start."""
    if launch.spoken is None:
        return None
    from swarm.supervisor.talk import Talk  # few do

    return Talk(launch, launch.spoken, chores)


def _copied(fd: int) -> int:
    """Return a descriptor of a copy of a file: that of the file itself a program in a box could open to write."""
    copy = os.memfd_create("stdin", os.MFD_CLOEXEC)
    try:
        while piece := os.read(fd, _PIECE):
            while piece:
                piece = piece[os.write(copy, piece) :]
    finally:
        os.close(fd)
    os.lseek(copy, 0, os.SEEK_SET)
    return copy
