"""The repository lock: one writer at a time, freed by the kernel when its holder dies.

The file is made once and never deleted: unlinking a locked file would let two processes each lock
"the" file.  It holds who has the lock, for the error message of whoever waits in vain.  The
descriptor is inherited by the git children, so an orphaned git keeps the lock until it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from typing import TYPE_CHECKING

from swarm.machine import own, records
from swarm.project.errors import Locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


_HINT = "wait for it to end, then try again; or wait for it up to 10 minutes: export SWARM_LOCK_TIMEOUT=600"
#: A process that waits longer than this shows the holder and its step, repeatedly, because the step changes.
_SILENT, _TELL_EVERY = 1.0, 0.5
#: A note takes this much of the file, whatever it says; of its words so much is kept.
_ROOM, _LONGEST = 4096, 200


@contextlib.contextmanager
def hold(
    path: Path, *, command: str, timeout: float, waiting: Callable[[str], None] = lambda _text: None
) -> Iterator[int]:
    """Hold the lock for this block; gives the descriptor to pass on to git.

    Args:
        waiting: told who holds it, by those who have to wait for long.

    Raises:
        Locked: somebody else held it for all of *timeout* seconds.
    """
    from filelock import lock_descriptor, unlock_descriptor

    fd = own.open(os.fspath(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        now = time.monotonic()
        deadline, tell_at = now + timeout, now + _SILENT
        while not lock_descriptor(fd, blocking=False):
            now = time.monotonic()
            if now >= deadline:
                what = f"cannot get the lock of this repository within {timeout:g} s: it is {_holder(path)}"
                raise Locked(what, hint=_HINT)
            if now >= tell_at:
                tell_at = now + _TELL_EVERY
                waiting(f"waiting for the lock, {_holder(path)}")
            time.sleep(random.uniform(0.005, 0.03))  # noqa: S311  # spread the waiters, no secret
        try:
            sign(fd, command, clock())
            yield fd
        finally:
            unlock_descriptor(fd)
    finally:
        os.close(fd)


def clock() -> str:
    """Return the time of day for people."""
    return time.strftime("%H:%M:%S")


def sign(fd: int, command: str, since: str, doing: str = "") -> None:
    """Record the holder of the lock and its current step; a full disk is no reason to stop."""
    note = {"pid": os.getpid(), "command": command[:_LONGEST], "since": since, "doing": doing[:_LONGEST]}
    with contextlib.suppress(OSError):
        os.pwrite(fd, json.dumps(note).encode().ljust(_ROOM), 0)  # in one write, so that no reader sees a mix of two


class Doing:
    """The current step of a lock's holder, for waiting processes; silent after the release."""

    def __init__(self, fd: int, command: str) -> None:
        self._fd = fd
        self._command = command
        self._since = clock()
        self._mutex = threading.Lock()

    def tell(self, doing: str) -> None:
        """Write it down; another thread that still has this may come late, when the descriptor is another file's."""
        with self._mutex:
            if self._fd >= 0:
                sign(self._fd, self._command, self._since, doing)

    def end(self) -> None:
        """Be silent from now on."""
        with self._mutex:
            self._fd = -1


def _holder(path: Path) -> str:
    try:
        note = records.read_object(str(path), 2 * _ROOM)
        doing = f": {note['doing']}" if note.get("doing") else ""
        return f"held by `{note['command']}` (pid {note['pid']}) since {note['since']}{doing}"
    except (OSError, ValueError, KeyError, TypeError):
        return "held by another swarm command"
