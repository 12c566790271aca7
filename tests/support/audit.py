"""What this process does while a block runs: programs that it starts, files that it opens."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Seen:
    """Programs by where they were started and their words, files by their paths, each as often as it was."""

    programs: list[tuple[str, ...]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Take an event of Python's own account."""
        if event == "subprocess.Popen":
            folder = os.path.realpath(args[2] or ".")  # git is started in the folder of a descriptor
            self.programs.append((folder, *map(os.fsdecode, args[1])))
        elif event == "open" and isinstance(args[0], str | bytes):
            self.files.append(os.fsdecode(args[0]))


_listening: list[Seen] = []


def _hear(event: str, args: tuple[Any, ...]) -> None:
    for seen in _listening:
        seen.hear(event, args)


@functools.cache
def _listen() -> None:
    sys.addaudithook(_hear)  # it stays until the process ends


@contextlib.contextmanager
def audited() -> Iterator[Seen]:
    """Note what is done within the block."""
    _listen()
    seen = Seen()
    _listening.append(seen)
    try:
        yield seen
    finally:
        _listening.remove(seen)
