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
import time
from typing import TYPE_CHECKING

from swarm import fsio
from swarm.domain.errors import Locked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def hold(path: Path, *, command: str, timeout: float) -> Iterator[int]:
    """Hold the lock for this block; gives the descriptor to pass on to git.

    Raises:
        Locked: somebody else held it for all of *timeout* seconds.
    """
    from filelock import lock_descriptor, unlock_descriptor

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while not lock_descriptor(fd, blocking=False):
            if time.monotonic() >= deadline:
                raise Locked(f"cannot get the lock of this repository within {timeout:g} s: {_holder(path)}")
            time.sleep(random.uniform(0.005, 0.03))  # noqa: S311  # spread the waiters, no secret
        try:
            _sign(fd, command)
            yield fd
        finally:
            unlock_descriptor(fd)
    finally:
        os.close(fd)


def _sign(fd: int, command: str) -> None:
    """Write down who holds the lock; a disk without room for that is no reason to stop."""
    note = {"pid": os.getpid(), "command": command, "since": time.strftime("%H:%M:%S")}
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(note).encode(), 0)


def _holder(path: Path) -> str:
    try:
        note = json.loads(fsio.read_small(path, 4096))
        return f"held by `{note['command']}` (pid {note['pid']}) since {note['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "held by another swarm command"
