"""The journal of operations under way, and the history of finished ones.

Whoever holds the repository lock and finds an operation here knows that its process is dead.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.project import codec

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.layout import Layout

_LIMIT = 64 << 20


class Journal:
    """The folder of operations of one repository."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def _file(self, operation: str) -> Path:
        return self._layout.journal / f"{operation}.json"

    def write(self, operation: str, record: dict[str, Any]) -> None:
        """Write an operation down, or its next phase; it is durable when this returns."""
        files.write_atomic(self._file(operation), codec.encode(record))

    def drop(self, operation: str) -> None:
        """Forget a finished operation."""
        files.unlink_if_there(self._file(operation))
        files.sync_folder(self._layout.journal)

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of unfinished operations, oldest first; never creates anything."""
        try:
            found = os.listdir(self._layout.journal)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(sorted(n.removesuffix(".json") for n in found if n.endswith(".json") and n[0] != "."))

    def read(self, operation: str) -> dict[str, Any]:
        """Read one back.

        Raises:
            RecordProblem: it is not readable; a torn write cannot happen, so somebody changed it.
        """
        path = self._file(operation)
        return codec.decode(files.read_small(path, _LIMIT), str(path))

    def sweep(self) -> None:
        """Remove temporary files that a kill left in swarm's own folders."""
        for folder in (self._layout.state, self._layout.journal):
            files.sweep_temporaries(folder)

    def log(self, **facts: Any) -> None:
        """Add a line to the history; it is durable when this returns."""
        line = json.dumps(facts, ensure_ascii=True, sort_keys=False)
        is_new = not files.exists(self._layout.history)
        files.append_line(self._layout.history, line.encode("ascii"), durable=True)
        if is_new:
            files.sync_folder(self._layout.journal)

    def mark(self) -> tuple[int, int]:
        """Return a mark that changes with every finished operation."""
        try:
            info = os.stat(self._layout.history)
        except (FileNotFoundError, NotADirectoryError):
            return 0, 0
        return info.st_size, info.st_mtime_ns

    def history(self) -> tuple[dict[str, Any], ...]:
        """Return the history, oldest first, as far back as fits, without torn lines."""
        try:
            data = files.read_tail(self._layout.history, _LIMIT)
        except FileNotFoundError:
            return ()
        entries = []
        for line in data.splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                continue
        return tuple(entries)
