"""Type text into a pane through a paste buffer, so no character acts as a key.

``send-keys`` would take ``Enter`` and a leading ``-`` for its own, drop a ``;`` at the end, and refuse what is long.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.delivery.typed import cut, is_faint, squeezed
from swarm.machine.ttys import EDITORS, takes_lines
from swarm.terminal.errors import TerminalProblem
from swarm.terminal.values import Screen

if TYPE_CHECKING:
    from swarm.terminal.tmux import Tmux

_FIELDS = (
    *("pane_pid", "pane_dead", "pane_in_mode", "pane_synchronized", "pane_input_off"),
    *("cursor_x", "cursor_y", "pane_height", "pane_tty", "pane_current_command"),
)
_SET = ("1", "2", "3", "4", "5", "6", "7", "8", "9")


def _halves(lines: list[str], height: int) -> tuple[list[str], list[str]]:
    """Split two captures, of which each may lack its last, empty rows."""
    return lines[:height], lines[height:]


class Typist:
    """Types into the panes of one tmux server."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux

    def look(self, pane: str) -> Screen | None:
        """Return a pane's content at one moment; None without such a pane."""
        form = " ".join(f"#{{?{name},#{{{name}}},0}}" for name in _FIELDS)
        show = ("capture-pane", "-p", "-t", pane)
        # The same again with styles, which the plain text must not hold.
        code, lines, _ = self._tmux.command("display-message", "-p", "-t", pane, form, ";", *show, ";", *show, "-e")
        words = lines[0].split(" ", len(_FIELDS) - 1) if code == 0 and lines else []
        if len(words) != len(_FIELDS):
            return None
        pid, dead, in_mode, synchronized, off, x, y, height, tty, command = words
        rows, styled = _halves(lines[1:], int(height))
        row = rows[int(y)] if int(y) < len(rows) else ""
        before, after = cut(row, int(x))
        return Screen(
            pid=int(pid),
            dead=dead in _SET,
            in_mode=in_mode in _SET,
            closed=synchronized in _SET or off in _SET,
            before=before,
            after=after,
            text=squeezed("".join(rows)),
            faint=is_faint(styled[int(y)], int(x)) if int(y) < len(styled) else False,
            takes_lines=takes_lines(tty) if command in EDITORS else None,
        )

    def paste(self, pane: str, text: str) -> None:
        """Put a text into a pane as it is, in brackets where the program has asked for that.

        Raises:
            TerminalProblem: there is no such pane, or tmux failed.
        """
        name = f"swarm-{os.urandom(8).hex()}"
        put, paste = ("load-buffer", "-b", name, "-"), ("paste-buffer", "-p", "-d", "-r", "-b", name, "-t", pane)
        code, _, why = self._tmux.command(*put, ";", *paste, given=text.encode("utf-8", "surrogateescape"))
        if code != 0:
            self._tmux.command("delete-buffer", "-b", name)
            raise TerminalProblem(f"cannot type into pane {pane}: {why}")

    def enter(self, pane: str) -> None:
        """Press Enter.

        Raises:
            TerminalProblem: there is no such pane.
        """
        code, _, why = self._tmux.command("send-keys", "-t", pane, "Enter")
        if code != 0:
            raise TerminalProblem(f"cannot press Enter in pane {pane}: {why}")
