"""Whether Claude Code still shows a question: a person may answer it in the pane, and no hook tells of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.machine import processes
from swarm.programs.claude import state

if TYPE_CHECKING:
    from pathlib import Path


class Asking:
    """Called again and again while a hook waits for an answer.

    Args:
        folder: the program's configuration folder; None when it has none, and only its life counts.
        pid, start: the program.
    """

    def __init__(self, folder: Path | None, pid: int, start: int) -> None:
        self._folder = folder
        self._pid = pid
        self._start = start
        self._was_shown = False

    def __call__(self) -> bool:
        """Whether an answer would still be of use.

        The question comes up a moment after its hook was started; so it is over only when it was seen before.
        """
        if not processes.is_alive(self._pid, self._start):
            return False
        words = state.read(self._folder, self._pid, self._start) if self._folder else None
        if words is None:
            return True
        shown = words.state == "waiting"
        self._was_shown |= shown
        return shown or not self._was_shown
