"""Shared parts of reading programs' records."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

from swarm.machine.tail import mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The arguments that say most about a call, the best first.
_TELLING = (
    *("command", "cmd", "file_path", "path", "filePath", "absolute_path", "pattern", "query", "url", "description"),
    *("prompt", "input", "name"),
)


def milliseconds(stamp: object) -> int:
    """Return an ISO time as milliseconds since 1970; 0 when it is none."""
    try:
        return round(dt.datetime.fromisoformat(str(stamp)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def telling(given: Mapping[str, Any]) -> str:
    """Return the most telling argument of a call, in a few words."""
    for key in _TELLING:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return " ".join(value)
    try:
        return json.dumps(given, ensure_ascii=False) if given else ""
    except RecursionError:
        return "…"


def arguments(value: object) -> dict[str, Any]:
    """Return the arguments of a call, which may be JSON in a text."""
    if isinstance(value, str):
        try:
            return mapping(json.loads(value)) or {"input": value}
        except (ValueError, RecursionError):
            return {"input": value}
    return mapping(value)


def words(content: object, depth: int = 20) -> str:
    """Return the text of a message's content: a text, or a list of blocks that hold some; not of endless depth."""
    if not depth:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (words(block, depth - 1) for block in content)))
    if isinstance(content, dict):
        return next((words(content[key], depth - 1) for key in ("text", "content", "output") if key in content), "")
    return ""
