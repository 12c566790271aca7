"""What opencode says of a turn without a terminal, in the lines of ``run --format json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.programs.turns import Kind, Said, by_status, json_lines, number

if TYPE_CHECKING:
    from pathlib import Path

#: Why the last step of a turn ends.
_END = "stop"


def said(out: Path) -> Said:
    """Return how the last step ended, with the tokens of all steps."""
    kind: Kind | None = None
    text, message, conversation = "", "", ""
    read, written = 0, 0
    for line in json_lines(out):
        what, part = line.get("type"), _table(line.get("part"))
        conversation = str(line.get("sessionID") or conversation)
        if what == "text":
            text = str(part.get("text", ""))
        elif what == "step_start":
            kind = None
        elif what == "step_finish":
            tokens = _table(part.get("tokens"))
            read += number(tokens.get("input")) + number(_table(tokens.get("cache")).get("read"))
            written += number(tokens.get("output"))
            kind = Kind.DONE if part.get("reason") == _END else kind
        elif what == "error":
            kind, message = _error(_table(line.get("error")))
    return Said(kind, text, "" if kind is Kind.DONE else message, read, written, conversation=conversation)


def _error(error: dict[str, Any]) -> tuple[Kind, str]:
    data = _table(error.get("data"))
    status = data.get("statusCode")
    message = str(data.get("message") or error.get("name") or "it failed")
    if not isinstance(status, int) and data.get("isRetryable") is False:
        return Kind.FATAL, message
    return by_status(status if isinstance(status, int) else None), message


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
