"""The demo agent's record of its conversation, which ``swarm transcript`` reads like those of real programs."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE = "conversation.jsonl"


class Record:
    """One file in the run folder; without one nothing is written down.

    Args:
        folder: the run folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder and folder / FILE

    def note(self, who: str, text: str, **more: object) -> None:
        """Add an entry; a full disk stops no agent."""
        if self._path is None or not text.strip():
            return
        line = json.dumps({"at_ms": time.time_ns() // 1_000_000, "who": who, "text": text, **more})
        with contextlib.suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, f"{line}\n".encode("ascii"))
            finally:
                os.close(fd)
