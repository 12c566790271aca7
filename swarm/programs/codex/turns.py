"""What Codex says of a turn without a terminal, in the lines of ``exec --json``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from swarm.programs.turns import Kind, Said, by_status, by_words, json_lines, number

if TYPE_CHECKING:
    from pathlib import Path

_STATUS = re.compile(r"\bstatus:? (\d{3})\b|\b(\d{3}) (?:Too Many Requests|Unauthorized|Bad Request|Forbidden)")
_FOR_GOOD = re.compile(r"usage limit|quota", re.IGNORECASE)


def said(out: Path) -> Said:
    """Return how the turn ended; its tokens are those of the whole conversation."""
    kind: Kind | None = None
    text, message, conversation = "", "", ""
    usage: dict[str, Any] = {}
    for line in json_lines(out):
        what, item = line.get("type"), line.get("item")
        if what == "thread.started":
            conversation = str(line.get("thread_id", ""))
        elif what == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
            text = str(item.get("text", ""))
        elif what == "turn.completed":
            kind, usage = Kind.DONE, line["usage"] if isinstance(line.get("usage"), dict) else {}
        elif what in {"turn.failed", "error"}:
            message = _message(line)
            kind = _kind(message)
    used = number(usage.get("input_tokens")), number(usage.get("output_tokens"))
    return Said(kind, text, "" if kind is Kind.DONE else message, *used, sum=True, conversation=conversation)


def _message(line: dict[str, Any]) -> str:
    error = line.get("error")
    return str(error.get("message", "") if isinstance(error, dict) else line.get("message", ""))


def _kind(message: str) -> Kind:
    found = _STATUS.search(message)
    if _FOR_GOOD.search(message):
        return Kind.FATAL
    if found:
        return by_status(int(found[1] or found[2]))
    return by_words(message) or Kind.RETRYABLE
