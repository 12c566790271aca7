"""The program in a pane that becomes bubblewrap: it hands over options and filter by descriptors, and no other.

Run by its path, by a Python that has nothing but the standard library: notes, then the command for inside.
Environment values stand in the options, and what stands in a command line can be read by everybody with ``ps``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys


def descriptor(name: str, data: bytes) -> int:
    """Return a descriptor from which a started program can read *data*."""
    fd = os.memfd_create(name, 0)  # without the flag that closes it: the program inherits it
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def main(argv: list[str]) -> None:
    """Read the notes and become bubblewrap."""
    with open(argv[1], encoding="utf-8") as file:
        notes = json.load(file)
    # An open folder would be a way out of the box, and bubblewrap closes nothing.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # one is that by which the list was read
                os.close(int(name))
    given = list(notes["options"])
    for name in notes["passes"]:
        if name in os.environ:
            given += ["--setenv", name, os.environ[name]]
    given += ["--seccomp", str(descriptor("filter", bytes.fromhex(notes["filter"])))]
    options = descriptor("options", os.fsencode("\0".join(given)))
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    # Without an environment: bubblewrap stays in the box as its first process, and there `/proc/1/environ` shows it.
    os.execve(notes["program"], ["bwrap", "--args", str(options), "--", *argv[2:]], {})  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(sys.argv)
