"""Run a helper program with a time limit, and end everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Processes that left the group may hold its output open; swarm waits no longer for them.
_GRACE = 2.0


def run(
    argv: Sequence[str], *, environ: Mapping[str, str], limit: float, given: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without a shell, in its own process group.

    Args:
        limit: seconds; then the whole group is ended.
        given: what it reads on its standard input.

    Raises:
        OSError, ValueError: it could not be started.
        subprocess.TimeoutExpired
    """
    process = subprocess.Popen(
        argv,
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(given, limit)
    except BaseException:
        _end(process)
        raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def _end(process: subprocess.Popen[str]) -> None:
    """End the group of a program before its wait: its number cannot be reused yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired, ValueError, OSError):
        process.communicate(timeout=_GRACE)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
