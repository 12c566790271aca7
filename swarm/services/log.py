"""The log of a component: what happened to it, the last thousand entries, a line of JSON each.

It says which tasks began and how they ended, never what they are about: no prompt, no output, no token.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Any

from swarm.kit import files, redaction
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = ("debug", "info", "warning", "error")
KEPT = 1000
_LARGEST = 4 << 20


class Log:
    """The log of one component; what is on the disk from before goes on.

    Args:
        secrets: what no entry may hold.
    """

    def __init__(self, path: Path, component: str, level: str, secrets: tuple[str, ...] = ()) -> None:
        self._secrets = secrets
        self._path = path
        self._component = component
        self._least = LEVELS.index(level)
        self._mutex = Lock()
        self._entries: deque[dict[str, Any]] = deque(self._read(), maxlen=KEPT)
        self._lines = len(self._entries)

    def say(self, level: str, message: str) -> None:
        """Add an entry; a full disk is no reason to stop."""
        if LEVELS.index(level) < self._least:
            return
        message = redaction.from_text(message, self._secrets)
        entry = {"timestamp": timestamp(time.time()), "level": level, "component": self._component, "message": message}
        with self._mutex, contextlib.suppress(OSError, SwarmError):
            self._entries.append(entry)
            self._lines += 1
            if self._lines > 2 * KEPT:
                data = b"".join(map(_line, self._entries))
                files.write_atomic(self._path, data, 0o600, durable=False)
                self._lines = len(self._entries)
            else:
                files.append_line(self._path, _line(entry).rstrip())

    def set_level(self, level: str) -> None:
        """Leave out what is less than this from now on."""
        self._least = LEVELS.index(level)

    def last(self, count: int) -> list[dict[str, Any]]:
        """Return the last entries, oldest first."""
        with self._mutex:
            return list(self._entries)[-count:]

    def _read(self) -> list[dict[str, Any]]:
        found = []
        with contextlib.suppress(OSError, SwarmError):
            for line in files.read_tail(self._path, _LARGEST).splitlines():
                with contextlib.suppress(ValueError):
                    entry = json.loads(line)
                    found += [entry] if isinstance(entry, dict) else []
        return found[-KEPT:]


def timestamp(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=True).encode("ascii") + b"\n"
