"""One answer in JSON, as ASGI wants it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def close_with(
    send: Send, status: int, said: object, headers: Iterable[tuple[bytes, bytes]] = (), *, silent: bool = False
) -> None:
    """Answer, and end the connection, since what was sent may not have been read.

    Args:
        silent: send the head alone, as HEAD wants it.
    """
    body = json.dumps(said).encode("ascii")
    known = [(b"content-type", b"application/json"), (b"connection", b"close")]
    known.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": [*known, *headers]})
    await send({"type": "http.response.body", "body": b"" if silent else body})
