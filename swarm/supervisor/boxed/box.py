"""The processes between a supervisor and a program in a box.

    supervisor ── bubblewrap outside ── bubblewrap inside, the first process there ── program

When one of the two ends, so does everything in the box, at once; and neither tells of a program that was stopped from
the keyboard.
"""

from __future__ import annotations

import contextlib
import os
import signal

from swarm.machine import processes
from swarm.supervisor.boxed.forward import Forward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm.machine.processes import Seen
    from swarm.supervisor import gate
    from swarm.supervisor.chores import Chore, Chores

#: Seconds after which a commit in the box is noticed at the latest.
_LOOK_EVERY = 1.0
#: The variable by which `enter.py` finds our descriptor; and what bubblewrap writes into it at the end.
_MADE, _ENDED, _SAID = b"SWARM_MADE_FD", b'"exit-code"', 4096


class Made:
    """What bubblewrap says of the making of a box: its word for the end comes only when the program had begun."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("made", os.MFD_CLOEXEC)

    def hand_over(self) -> dict[bytes, bytes]:
        """In the child that becomes bubblewrap: let it keep the descriptor, and return what tells it so."""
        os.set_inheritable(self._fd, True)  # noqa: FBT003
        return {_MADE: b"%d" % self._fd}

    def has_begun(self) -> bool:
        """Whether a program had begun in the box that has ended."""
        return _ENDED in os.pread(self._fd, _SAID, 0)


class Box:
    """What stands between a supervisor and its program, and what is committed behind it.

    Attributes:
        pid: the supervisor's child.
    """

    def __init__(self, launch: gate.Launch, chores: Chores, pid: int) -> None:
        self.pid = pid
        self._found: Seen | None = None
        self._launch = launch
        self._chores = chores
        self._chore: Chore | None = None
        self._mark = "".join(map(_seen, launch.commits))
        self._forward = Forward(launch, chores)
        self._forward.open()

    def has_begun(self) -> bool:
        """Whether there is a program in the box."""
        return self.program() != self.pid

    def program(self) -> int:
        """Return the program's process; before it has begun, the supervisor's child."""
        if self._found is None or not processes.is_alive(self._found.pid, self._found.start):
            self._found = processes.in_box(self.pid)
        return self.pid if self._found is None else self._found.pid

    def holds(self, seen: Seen) -> bool:
        """Whether a process is one of those that hold the box."""
        return self.pid in (seen.pid, seen.ppid)

    def look(self) -> float:
        """Look for a stopped program and for new commits; return after how many seconds to look again."""
        self._go_on()
        self._forward.look()
        if self._chore is not None and self._chore.status is not None:
            self._chore = None
        mark = "".join(map(_seen, self._launch.commits))
        if mark != self._mark and self._chore is None:
            self._mark = mark
            self._chore = self._chores.start(self._launch.take_in, self._launch.label_env)
        return _LOOK_EVERY

    def watch(self) -> tuple[int, ...]:
        """Return the descriptors that call for a look when they can be read."""
        return self._forward.watch()

    def close(self) -> None:
        """Serve nobody any more."""
        self._forward.close()

    def _go_on(self) -> None:
        """Let a program go on that was stopped from the keyboard: nobody else would."""
        program = self.program()
        words = processes.read(f"/proc/{program}/stat").rpartition(b")")[2].split()
        if words[:1] == [b"T"]:
            with contextlib.suppress(OSError, IndexError, ValueError):
                os.killpg(int(words[2]), signal.SIGCONT)


def _seen(path: bytes) -> str:
    """Return a text that changes when a file does."""
    try:
        info = os.lstat(path)
    except OSError:
        return "-"
    return f"{info.st_ino}:{info.st_size}:{info.st_mtime_ns} "
