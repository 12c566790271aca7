"""Read the few fields of a session's record, ``session.json``, that processes beside an agent need.

``project/codec.py`` knows its whole form, and writes it.
"""

from __future__ import annotations

from swarm.machine import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "session.json"
_LIMIT = 16 << 20


def read(folder: str) -> dict[str, object]:
    """Return the record in a session's folder; empty without a readable one."""
    return read_file(f"{folder}/{FILE}")


def read_file(path: str) -> dict[str, object]:
    """Return the record in a file; empty without a readable one."""
    return records.read(path, _LIMIT) or {}


def agents(record: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the agents of a record, each with its name."""
    listed = record.get("agents")
    known = listed if isinstance(listed, list) else []
    return [one for one in known if isinstance(one, dict) and isinstance(one.get("name"), str)]


def operations(record: Mapping[str, object]) -> list[object]:
    """Return the operations that are committed."""
    listed = record.get("operations")
    return listed if isinstance(listed, list) else []


def generation(record: Mapping[str, object], agent: str) -> str:
    """Return which run of its name an agent of a record is: the operation that made it, else its session."""
    for one in agents(record):
        if one["name"] == agent and one.get("operation"):
            return str(one["operation"])
    return str(next(iter(operations(record)), ""))
