"""opencode: a database in its data folder; one part of kind ``step-finish`` for each answer."""

from __future__ import annotations

import json
import os

from swarm.machine.tail import mapping, number, text
from swarm.programs.opencode import database
from swarm.usage.spending.use import Counts, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_PARTS = """
select part.id, part.session_id, part.time_created, part.time_updated, part.data, message.data
from part join message on message.id = part.message_id join session on session.id = part.session_id
where (session.directory = ? or substr(session.directory, 1, ?) = ?) and part.time_created >= ?
and part.time_updated >= ? order by part.time_created, part.id
"""
_LATEST = """
select part.id, part.session_id, part.time_created, part.data, message.data
from part join message on message.id = part.message_id
where part.session_id =
(select id from session where directory = ? and parent_id is null order by time_updated desc limit 1)
and part.time_created >= ? order by part.time_created desc, part.id desc limit 50
"""


_MOST_COST = 1e9  # dollars of one answer


def home_of(env: Mapping[str, str], home: str) -> str:
    """Return the folder of its records, for a program with this environment."""
    return f"{env.get('XDG_DATA_HOME') or f'{home}/.local/share'}/opencode"


class Record:
    """All conversations of one worktree; arguments as ``usage.spending.meter`` gives them."""

    def __init__(self, home: str, cwd: str, since_ms: int) -> None:
        self._path = os.path.join(home, "opencode.db")
        self._below = f"{cwd}/"
        self._since = since_ms
        self._times: tuple[int, ...] = ()
        self._newest = 0

    def grown(self) -> bool:
        """Whether there may be something new: others write to the same database."""
        return self._now() != self._times

    def uses(self) -> Iterator[Use]:
        """Give the answers that were added since the last look."""
        for _, part in self.lines():
            use = use_of(part)
            if use is not None:
                yield use

    def lines(self, *_words: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the parts that were added or changed since, each with its conversation; some again."""
        self._times = self._now()
        where = (self._below[:-1], len(self._below), self._below, self._since, self._newest)
        for name, conversation, created, updated, data, message in self._rows(_PARTS, *where):
            self._newest = max(self._newest, updated)
            yield conversation, {"id": name, "at_ms": created, **_object(data), "message": _object(message)}

    def latest(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the end of the newest conversation."""
        rows = self._rows(_LATEST, self._below[:-1], self._since)
        for name, conversation, created, data, message in reversed(rows):
            yield conversation, {"id": name, "at_ms": created, **_object(data), "message": _object(message)}

    def _rows(self, query: str, *where: str | int) -> list[tuple[Any, ...]]:
        return database.rows(self._path, query, where)

    def _now(self) -> tuple[int, ...]:
        found = []
        for path in (self._path, f"{self._path}-wal"):
            try:
                info = os.stat(path)
                found += [info.st_size, info.st_mtime_ns]
            except OSError:
                found += [0, 0]
        return tuple(found)


def use_of(part: dict[str, Any]) -> Use | None:
    """Return the usage in one part; None without any."""
    tokens, message = mapping(part.get("tokens")), mapping(part.get("message"))
    if part.get("type") != "step-finish" or not tokens:
        return None
    cache, cost = mapping(tokens.get("cache")), part.get("cost")
    counts = Counts(
        input=number(tokens.get("input")),
        output=number(tokens.get("output")) + number(tokens.get("reasoning")),
        cache_read=number(cache.get("read")),
        cache_write=number(cache.get("write")),
        requests=1,
        told_cost=float(cost) if isinstance(cost, (int, float)) and 0 < cost < _MOST_COST else 0.0,
    )
    return Use(text(part.get("id")), text(message.get("modelID")), counts)


def _object(data: object) -> dict[str, Any]:
    try:
        return mapping(json.loads(data)) if isinstance(data, (str, bytes)) else {}
    except (ValueError, RecursionError):
        return {}
