"""The demo agent's pane: lines that fit any width, and a keyboard that can be waited for."""

from __future__ import annotations

import os
import select
import sys
import textwrap

from swarm.demo.record import Record

_NARROWEST = 10
_COLOURS = {"good": "32", "bad": "31", "title": "1", "quiet": "2"}


class Screen:
    """Writes to the terminal; every line is wrapped to the width of the moment."""

    def __init__(self, record: Record | None = None) -> None:
        self._record = record or Record()
        is_terminal = sys.stdout.isatty()
        dumb = os.environ.get("TERM", "dumb") == "dumb"
        self._colour = is_terminal and not dumb and not os.environ.get("NO_COLOR")

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            columns, rows = os.get_terminal_size(1)
        except OSError:
            return 80, 24
        return columns or 80, rows or 24

    def say(self, text: str, look: str = "", *, label: str = "", most: int = 0) -> None:
        """Show a text.

        Args:
            text: shown without control characters.
            look: ``good``, ``bad``, ``title`` or ``quiet``.
            label: stands before the first line, the others are indented below it.
            most: lines to show at most; 0 is all.
        """
        width = max(_NARROWEST, self.size[0] - 1)
        plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        self._record.note("agent", f"{label.lstrip()}{plain}" if plain else "")
        lines = textwrap.wrap(plain, width, initial_indent=label, subsequent_indent=" " * len(label)) or [label]
        if most and len(lines) > most:
            lines = [*lines[: most - 1], lines[most - 1][: width - 3] + "..."]
        for line in lines:
            self._put((f"\x1b[{_COLOURS[look]}m{line}\x1b[0m" if look and self._colour else line) + "\n")

    def ask(self, prompt: str) -> None:
        """Show a prompt and stay behind it."""
        self._put(prompt)

    def _put(self, text: str) -> None:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()


class Keyboard:
    """Lines from standard input, one at a time."""

    def __init__(self, record: Record | None = None, fd: int = 0) -> None:
        self._record = record or Record()
        self._fd = fd
        self._rest = b""
        self._ended = False

    def has_line(self) -> bool:
        """Whether ``line`` has something to give at once."""
        return b"\n" in self._rest or self._ended

    def wait(self, also: tuple[int, ...] = (), seconds: float | None = None) -> None:
        """Wait until something is typed, one of *also* can be read, or the time is up."""
        ready, _, _ = select.select([self._fd, *also], [], [], seconds)
        if self._fd in ready:
            data = os.read(self._fd, 4096)
            self._ended = not data
            self._rest += data

    def line(self) -> str | None:
        """Wait for a line; None when there will be no more."""
        while not self.has_line():
            self.wait()
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        text = line.decode("utf-8", "replace").rstrip("\r")
        self._record.note("user", text)
        return text

    def forget(self) -> None:
        """Drop the begun line."""
        self._rest = b""
