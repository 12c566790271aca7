"""The terminal of the pane in which an agent's program runs."""

from __future__ import annotations

import contextlib
import os
import termios


class Terminal:
    """The pane's terminal; without one its methods do nothing."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._modes: list[object] | None = None
        with contextlib.suppress(termios.error):
            self._modes = list(termios.tcgetattr(fd))

    def give(self, group: int) -> None:
        """Make a process group the one that the keyboard speaks to."""
        with contextlib.suppress(OSError):  # not a terminal, or not ours
            os.tcsetpgrp(self._fd, group)

    def group(self) -> int:
        """Return the terminal's foreground process group, or 0."""
        try:
            return os.tcgetpgrp(self._fd)
        except OSError:
            return 0

    def take_back(self) -> None:
        """Take the keyboard back and put the modes as they were found."""
        if self._modes is None:
            return
        self.give(os.getpgrp())
        try:
            termios.tcflow(self._fd, termios.TCOON)  # Ctrl-S would hold up our last line for ever
            termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)  # type: ignore[arg-type]  # as it gave them
        except termios.error:
            return  # it is gone
        if os.environ.get("TERM", "dumb") != "dumb":
            with contextlib.suppress(OSError):
                os.write(1, b"\x1b[0m\x1b[?25h")


def tell(text: str, *, after_program: bool = False) -> None:
    """Write a line into the pane."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    line = f"[swarm] {plain}\n".encode("utf-8", "replace")
    _write(b"\n" + line if after_program else line)


def _write(data: bytes) -> None:
    with contextlib.suppress(OSError):  # the terminal is gone; the files tell it
        os.write(1, data)
