"""The Responses API."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from swarm.testing.api.script import FREEFORM, Request, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.api.script import Turn


def read(method: str, path: str, body: dict[str, Any]) -> Request:
    """Understand a request."""
    items = body.get("input") or []
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    system = [body.get("instructions") or ""]
    system += [t for item in items if item.get("role") in ("developer", "system") for t in texts_in(item)]
    others = [item for item in items if item.get("role") not in ("developer", "system", "assistant")]
    tools = tuple(str(tool.get("name") or tool.get("type")) for tool in _tools(body, items))
    return Request(
        method,
        path,
        "openai",
        body,
        main=bool(tools),
        system="\n".join(system),
        said=tuple(text for item in others for text in texts_in(item)),
        model=str(body.get("model", "")),
        tools=tools,
    )


def _tools(body: dict[str, Any], items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools of a request, those too that are told as a part of the conversation."""
    later = [tool for item in items if item.get("type") == "additional_tools" for tool in item.get("tools") or []]
    return [*(body.get("tools") or []), *later]


def error(turn: Turn) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"message": turn.text, "type": "scripted", "code": None, "param": None}}


def whole(request: Request, turn: Turn) -> dict[str, Any]:
    """Return the answer in one piece."""
    return _response(request, turn, "completed", _items(turn))


def stream(request: Request, turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the answer as events."""
    items = _items(turn)
    done = _response(request, turn, "completed", items)
    yield "response.created", {"response": {**done, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(items):
        empty = {**item, "status": "in_progress"}
        where = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            yield "response.output_item.added", {"output_index": index, "item": {**empty, "content": []}}
            part = {"type": "output_text", "text": "", "annotations": []}
            yield "response.content_part.added", {**where, "content_index": 0, "part": part}
            yield "response.output_text.delta", {**where, "content_index": 0, "delta": turn.text}
            yield "response.output_text.done", {**where, "content_index": 0, "text": turn.text}
        elif item["type"] == "custom_tool_call":
            yield "response.output_item.added", {"output_index": index, "item": {**empty, "input": ""}}
        else:
            yield "response.output_item.added", {"output_index": index, "item": {**empty, "arguments": ""}}
            yield "response.function_call_arguments.done", {**where, "arguments": item["arguments"]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": done}


def _items(turn: Turn) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        message = {"type": "message", "id": _id("msg"), "status": "completed", "role": "assistant"}
        found.append({**message, "content": content})
    for name, given in turn.calls:
        one = {"id": _id("fc"), "call_id": _id("call"), "status": "completed", "name": name}
        if FREEFORM in given:
            found.append({**one, "type": "custom_tool_call", "input": given[FREEFORM]})
        else:
            server, _, tool = name.rpartition("__")  # the tools of a server are in a namespace of their own
            named = {"namespace": server, "name": tool} if name.startswith("mcp__") else {}
            found.append({**one, **named, "type": "function_call", "arguments": json.dumps(given)})
    return found


def _response(request: Request, turn: Turn, status: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    read_, written = turn.tokens
    return {
        "id": _id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "model": request.model,
        "output": items,
        "error": None,
        "usage": {
            "input_tokens": read_ + turn.cached,
            "input_tokens_details": {"cached_tokens": turn.cached},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read_ + turn.cached + written,
        },
    }


def _id(kind: str) -> str:
    return f"{kind}_{uuid4().hex}"
