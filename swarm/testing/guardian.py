"""End the processes of a test run that was itself ended: by Ctrl-C, by a signal, by ``kill -9``.

It is a process of its own, which reads from a pipe what the run makes, and acts when the pipe is closed.  Run as a
program it knows nothing of swarm, and starts in milliseconds.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

_DEADLINE = 20.0


def watch(home: os.PathLike[str] | str, folder: str = "") -> None:
    """Have every process ended that has this home, and a folder removed, once this process is no more."""
    pipe = _guardian().stdin
    assert pipe is not None
    pipe.write(json.dumps([os.fspath(home), folder]) + "\n")
    pipe.flush()


@functools.cache
def _guardian() -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        text=True,
        start_new_session=True,  # Ctrl-C and what ends the whole group of the run are for the run alone
    )
    atexit.register(started.communicate)
    return started


def main() -> None:
    """Wait for the end of the run; then end its processes and remove its folders."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    watched = [json.loads(line) for line in sys.stdin if line.endswith("\n")]
    homes = {os.fsencode(f"HOME={home}") for home, _ in watched}
    end = time.monotonic() + _DEADLINE
    while _kill(homes) and time.monotonic() < end:  # what was just about to start another one is looked for again
        time.sleep(0.05)
    for _, folder in watched:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _kill(homes: set[bytes]) -> int:
    """End the processes with these homes; return how many there were."""
    found = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            with open(f"/proc/{name}/environ", "rb") as file:
                environ = file.read().split(b"\0")
            if not homes.isdisjoint(environ):
                os.kill(int(name), signal.SIGKILL)
                found += 1
    return found


if __name__ == "__main__":
    main()
