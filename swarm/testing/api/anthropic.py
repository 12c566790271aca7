"""The Messages API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from swarm.testing.api.script import Request, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.api.script import Turn

ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(method: str, path: str, body: dict[str, Any]) -> Request:
    """Understand a request."""
    said = [text for m in body.get("messages", []) if m.get("role") != "assistant" for text in texts_in(m["content"])]
    tools = tuple(str(tool.get("name", "")) for tool in body.get("tools") or [])
    return Request(
        method,
        path,
        "anthropic",
        body,
        main=bool(tools) and not path.startswith("/v1/messages/"),
        system="\n".join(texts_in(body.get("system", ""))),
        said=tuple(said),
        model=str(body.get("model", "")),
        tools=tools,
    )


def error(turn: Turn) -> dict[str, Any]:
    """Return the body of an error."""
    kind = ERRORS.get(turn.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": turn.text}, "request_id": "req_script"}


def whole(request: Request, turn: Turn) -> dict[str, Any]:
    """Return the answer in one piece."""
    if "count_tokens" in request.path:
        return {"input_tokens": turn.tokens[0]}
    return {**_head(request, turn), "content": _blocks(turn), **_end(turn), "usage": _usage(turn)}


def stream(request: Request, turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the answer as events."""
    yield "message_start", {"message": {**_head(request, turn), "content": [], "stop_reason": None}}
    for index, block in enumerate(_blocks(turn)):
        if block["type"] == "text":
            begin: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            begin = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"index": index, "content_block": begin}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    yield "message_delta", {"delta": _end(turn), "usage": {"output_tokens": turn.tokens[1]}}
    yield "message_stop", {}


def _head(request: Request, turn: Turn) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "usage": _usage(turn),
    }


def _end(turn: Turn) -> dict[str, Any]:
    return {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}


def _usage(turn: Turn) -> dict[str, int]:
    read_, written = turn.tokens
    return {
        "input_tokens": read_,
        "output_tokens": written,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": turn.cached,
    }


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    return text + [
        {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": given}
        for name, given in turn.calls
    ]
