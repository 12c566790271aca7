"""Log errors of hooks in the run folder; the agent's program must not see them.

``swarm why`` shows the last line.
"""

from __future__ import annotations

import contextlib
import os
import time

from swarm.machine import own

FILE = "hooks.log"
_LARGEST = 256 << 10
_LAST = 4096
_LONGEST = 500


def note(run_dir: str, hook: str, trouble: str) -> None:
    """Write one line; do nothing outside of a pane or on a full disk."""
    if not run_dir:
        return
    path = os.path.join(run_dir, FILE)
    line = f"{int(time.time())} {hook}: {' '.join(trouble.split())[:_LONGEST]}\n"
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        own.trust_state_of(run_dir)
        fd = own.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size > _LARGEST:
                os.ftruncate(fd, 0)  # it is the last ones that help
            os.write(fd, line.encode(errors="replace"))
        finally:
            os.close(fd)


def last(run_dir: str) -> tuple[int, str] | None:
    """Return the time of the last error in seconds, and its text."""
    try:
        with open(os.path.join(run_dir, FILE), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST))
            lines = file.read(_LAST).decode(errors="replace").splitlines()
    except OSError:
        return None
    when, _, what = (lines[-1] if lines else "").partition(" ")
    return (int(when), what) if when.isascii() and when.isdigit() and what else None
