"""A caller's own name for a request: sent again, it makes no second task."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Annotated

from fastapi import Header

from swarm.http_door.failures import Failure

_KEY = re.compile(r"[\x21-\x7e]{1,200}")
Key = Annotated[str | None, Header(description="Your own name for the request: sent again, it makes no second task.")]


def id_for(owner: str, key: str | None) -> str | None:
    """Return the id of the task that a request with a key makes; None without a key.

    Args:
        owner: who takes it; a key means another task to each.
    """
    if key is None:
        return None
    if _KEY.fullmatch(key) is None:
        raise Failure("validation_error", "Idempotency-Key: 1 to 200 printable characters without a space")
    whole = f"{owner}\0{key}".encode()
    return f"task-{sha256(whole).hexdigest()[:32]}"
