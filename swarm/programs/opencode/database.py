"""Read opencode's database, which an agent may have written itself: any file can be a database.

One in a box is copied first, since SQLite makes files beside a database, and maps them into memory.  A query ends after
a while, whatever a database says that its tables are.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing

from swarm.machine import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SECONDS = 5.0
#: So many steps of SQLite's between two looks at the clock.
_STEPS = 100_000
_MOST_ROWS, _LONGEST, _LARGEST = 200_000, 64 << 20, 256 << 20
_TABLES = "select count(*) from sqlite_master where type = 'table' and name in ('part', 'message', 'session')"


def rows(path: str, query: str, where: Sequence[str | int]) -> list[tuple[Any, ...]]:
    """Return what a query finds; nothing where there is no such database, or it is not opencode's."""
    try:
        if not foreign.is_in_box(path):
            return _asked(path, "ro", query, where)
        import tempfile

        with tempfile.TemporaryDirectory(prefix="swarm-") as folder:
            copied = os.path.join(folder, "opencode.db")
            _copy(path, copied)
            if os.path.lexists(f"{path}-wal"):
                _copy(f"{path}-wal", f"{copied}-wal")
            return _asked(copied, "rw", query, where)
    except (OSError, sqlite3.Error):
        return []


def _copy(source: str, target: str) -> None:
    """Copy a file.

    Raises:
        OSError: it is none, or too large.
    """
    with open(foreign.open_file(source), "rb") as given, open(target, "xb") as made:
        left = _LARGEST
        while piece := given.read(1 << 20):
            left -= len(piece)
            if left < 0:
                raise OSError("it is too large")
            made.write(piece)


def _asked(path: str, mode: str, query: str, where: Sequence[str | int]) -> list[tuple[Any, ...]]:
    from urllib.parse import quote

    with closing(sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode={mode}", uri=True, timeout=1.0)) as db:
        until = time.monotonic() + _SECONDS
        db.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        db.execute("pragma trusted_schema = off")
        if db.execute(_TABLES).fetchone()[0] != 3:  # a view may be anything
            return []
        return db.execute(query, where).fetchmany(_MOST_ROWS)
