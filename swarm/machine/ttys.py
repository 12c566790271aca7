"""The terminal settings of the program that reads from it."""

from __future__ import annotations

import os
import termios

from swarm.machine import processes

#: Shells that edit their line themselves while they show their prompt; then the terminal does not.
EDITORS = frozenset({"bash", "zsh", "fish", "mksh", "ksh", "ksh93"})


def takes_lines(tty: str) -> bool | None:
    """Whether a terminal edits its input itself and passes it on line by line; None if unknown."""
    try:
        fd = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return bool(termios.tcgetattr(fd)[3] & termios.ICANON)
    except (OSError, termios.error):
        return None
    finally:
        os.close(fd)


def at_prompt(pid: int) -> bool | None:
    """Whether a shell itself reads a command from its terminal; None if unknown.

    One that is in the foreground and does not edit its line runs something of its own, such as a ``read`` that asks.
    """
    try:
        name, _, rest = os.fsdecode(processes.read(f"/proc/{pid}/stat")).rpartition(")")
        tty = os.readlink(f"/proc/{pid}/fd/0")
    except OSError:
        return None
    fields = rest.split()
    group, foreground = int(fields[2]), int(fields[5])
    if foreground <= 0:
        return None
    return group == foreground and not (name.partition("(")[2] in EDITORS and takes_lines(tty))
