"""What Gemini CLI says of a turn without a terminal, in the lines of ``--output-format stream-json``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from swarm.programs.turns import Kind, Said, by_status, by_words, json_lines, number

if TYPE_CHECKING:
    from pathlib import Path

_STATUS = re.compile(r"\b([45]\d\d)\b")


def said(out: Path) -> Said:
    """Return the last result, and the text of the model since the last thing that somebody else said."""
    parts: list[str] = []
    result: dict[str, Any] | None = None
    conversation = ""
    for line in json_lines(out):
        what = line.get("type")
        if what == "init":
            conversation = str(line.get("session_id", ""))
        elif what == "message" and line.get("role") == "assistant":
            parts = [*parts, str(line.get("content", ""))] if line.get("delta") else [str(line.get("content", ""))]
        elif what in {"message", "tool_use", "tool_result"}:
            parts = []
        elif what == "result":
            result = line
    text = "".join(parts)
    if result is None:
        return Said(text=text, conversation=conversation)
    done = result.get("status") == "success"
    stats = result["stats"] if isinstance(result.get("stats"), dict) else {}
    used = number(stats.get("input_tokens")), number(stats.get("output_tokens"))
    message = "" if done else _message(result)
    return Said(Kind.DONE if done else _kind(message), text, message, *used, conversation=conversation)


def _message(result: dict[str, Any]) -> str:
    error = result.get("error")
    return str(error.get("message", "")) if isinstance(error, dict) else str(error or "it failed")


def _kind(message: str) -> Kind | None:
    """Return what its message means; None: it does not say, and its standard error may."""
    found = _STATUS.search(message)
    return by_status(int(found[1])) if found else by_words(message)
