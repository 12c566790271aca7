"""The usage of removed agents: one line each in ``.swarm/usage.jsonl``."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.usage.values import AgentUsage, ModelUsage

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = 1
_LIMIT = 256 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """One removed agent.

    Attributes:
        usage: as it was counted when it was removed.
        source: where its program's records were.
    """

    usage: AgentUsage
    source: dict[str, Any]

    @property
    def whose(self) -> tuple[str, str, int]:
        """The part that distinguishes agents of one name."""
        return self.usage.session.casefold(), self.usage.agent.casefold(), self.usage.created_ms


def add(path: Path, kept: Kept) -> None:
    """Write one down; written twice, the last one counts."""
    line = json.dumps({"schema": SCHEMA, **asdict(kept.usage), "source": kept.source}, ensure_ascii=True)
    files.append_line(path, (b"\n" if _is_torn(path) else b"") + line.encode("ascii"))


def _is_torn(path: Path) -> bool:
    """Whether the last line was cut off, as by a full disk."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # it is not there, or empty
        return False


def read(path: Path) -> tuple[Kept, ...]:
    """Return the usage of all removed agents, in the order of removal; unreadable lines are skipped."""
    try:
        data = files.read_tail(path, _LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    found: dict[tuple[str, str, int], Kept] = {}
    for line in data.splitlines():
        kept = _kept(line)
        if kept is not None:
            found.pop(kept.whose, None)
            found[kept.whose] = kept
    return tuple(found.values())


def _kept(line: bytes) -> Kept | None:
    try:
        record = json.loads(line)
        if record["schema"] != SCHEMA:
            return None
        models = tuple(_made(ModelUsage, one) for one in record["models"])
        source = record["source"]
        return Kept(_made(AgentUsage, {**record, "models": models}), source if isinstance(source, dict) else {})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _made(kind: Any, record: dict[str, Any]) -> Any:
    return kind(**{one.name: record[one.name] for one in fields(kind)})
