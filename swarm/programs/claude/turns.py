"""What Claude Code says of a turn without a terminal, in the lines of ``--output-format stream-json``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from swarm.programs.turns import Kind, Said, all_lines, by_status, json_lines, number

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Why a turn ended that another try would end in the same way.
_FOR_GOOD = frozenset({"max_turns", "budget_exhausted", "prompt_too_long"})
_SUBTYPES = frozenset({"error_max_turns", "error_max_budget_usd"})
_ABORTED = "aborted"


def said(out: Path) -> Said:
    """Return the last result; without one the last text there is."""
    result: dict[str, Any] | None = None
    text, conversation, resets = "", "", 0.0
    for line in json_lines(out):
        kind = line.get("type")
        conversation = str(line.get("session_id") or conversation)
        if kind == "result":
            result = line
        elif kind == "assistant":
            result, text = None, _text(line) or text
        elif kind == "rate_limit_event":
            resets = _resets_at(line) or resets
    if result is None:
        return Said(text=text, conversation=conversation)
    kind = _kind(result)
    answer = result.get("result")
    message = answer if isinstance(answer, str) and answer else "; ".join(_texts(result.get("errors")))
    usage = result.get("usage") if isinstance(result.get("usage"), dict) else {}
    return Said(
        kind,
        answer if isinstance(answer, str) and kind is Kind.DONE else text,
        "" if kind is Kind.DONE else message or str(result.get("subtype")),
        _read(usage),
        number(usage.get("output_tokens")) if isinstance(usage, dict) else 0,
        conversation=conversation,
        wait=max(0.0, resets - time.time()) if kind is Kind.RATE_LIMITED else 0.0,
    )


def _kind(result: dict[str, Any]) -> Kind | None:
    """Return what came of the turn; its exit status and ``subtype: success`` do not tell."""
    reason = str(result.get("terminal_reason", ""))
    if result.get("is_error") is not True and result.get("subtype") == "success":
        return Kind.DONE
    if reason in _FOR_GOOD or result.get("subtype") in _SUBTYPES:
        return Kind.FATAL
    if reason.startswith(_ABORTED):
        return None  # somebody ended it: who did is known elsewhere
    status = result.get("api_error_status")
    return by_status(status if isinstance(status, int) else None)


def _read(usage: Any) -> int:
    if not isinstance(usage, dict):
        return 0
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(number(usage.get(name)) for name in names)


def _text(line: dict[str, Any]) -> str:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict) and part.get("type") == "text")


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _resets_at(line: dict[str, Any]) -> float:
    info = line.get("rate_limit_info")
    found = (info if isinstance(info, dict) else line).get("resetsAt") or line.get("resets_at")
    return float(found) if isinstance(found, (int, float)) and found > 0 else 0.0


def heard(folder: Path, conversations: Iterable[str]) -> frozenset[str]:
    """Return the ids of the user's texts in the records of some conversations.

    Args:
        folder: its configuration folder.
    """
    found = set()
    for path in (path for name in set(conversations) - {""} for path in folder.glob(f"projects/*/{name}.jsonl")):
        for line in all_lines(path, b'"type":"user"', b"queued_command"):
            given = line.get("attachment")
            if line.get("type") == "user":
                found.add(str(line.get("uuid")))
            elif isinstance(given, dict) and given.get("type") == "queued_command":  # it came during a turn
                found.add(str(given.get("source_uuid")))
    return frozenset(found)
