"""The generateContent API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from swarm.testing.api.script import Request, texts_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.api.script import Turn


def read(method: str, path: str, body: dict[str, Any]) -> Request:
    """Understand a request."""
    said = [text for item in body.get("contents") or [] if item.get("role") != "model" for text in texts_in(item)]
    tools = tuple(
        str(one.get("name", "")) for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []
    )
    return Request(
        method,
        path,
        "google",
        body,
        main=bool(tools) and "countTokens" not in path,
        system="\n".join(texts_in(body.get("systemInstruction") or {})),
        said=tuple(said),
        model=path.rpartition("/models/")[2].partition(":")[0],
        tools=tools,
    )


def error(turn: Turn) -> dict[str, Any]:
    """Return the body of an error."""
    status = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}
    return {"error": {"code": turn.status, "message": turn.text, "status": status.get(turn.status, "INTERNAL")}}


def whole(request: Request, turn: Turn) -> dict[str, Any]:
    """Return the answer in one piece."""
    if "countTokens" in request.path:
        return {"totalTokens": turn.tokens[0]}
    schema = request.body.get("generationConfig", {}).get("responseJsonSchema") if not request.main else None
    said = json.dumps(_example(schema)) if schema else turn.text
    text = [{"text": said}] if said else []
    calls = [{"functionCall": {"name": name, "args": given}} for name, given in turn.calls]
    read_, written = turn.tokens
    content = {"role": "model", "parts": [*text, *calls]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": read_ + turn.cached,
            "cachedContentTokenCount": turn.cached,
            "candidatesTokenCount": written,
            "totalTokenCount": read_ + turn.cached + written,
        },
        "modelVersion": request.model,
    }


def stream(request: Request, turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the answer as events: one is enough."""
    yield "", whole(request, turn)


def _example(schema: dict[str, Any]) -> Any:
    """Return something that a schema allows: the program's questions in between want answers of a form."""
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _example(inner) for name, inner in schema.get("properties", {}).items()}
    plain: dict[str, Any] = {"array": [], "number": 1, "integer": 1, "boolean": False}
    return plain.get(str(schema.get("type")), "scripted")
