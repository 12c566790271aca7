"""Waits as tasks, for clients that declare these: the call is answered at once, and the client asks how it stands.

    wait_for_event ─► nothing there ─► task "wait-e7-…", working ─► tasks/get … ─► completed, the event

The program goes on, or is idle, meanwhile; it is woken by the result.  Who does not declare tasks gets a bounded wait.
The name of a task says all there is to know of it, and a look takes nothing: the server keeps nothing, and the next
one answers, too.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, RequestParams
from pydantic import ValidationError

from swarm.mcp_door.arguments import LONGEST_WAIT, WaitForEvent

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolResult

#: The extension of the protocol.
EXTENSION = "io.modelcontextprotocol/tasks"
#: The tool that can be one.
TOOL = "wait_for_event"
#: So often its client is to ask.
_POLL_MS = 2000
_NAME = re.compile(r"wait-(e[0-9]{1,15})-([0-9]{1,15})-([0-9]{1,15})-([A-Za-z.]{0,300})")


class TaskParams(RequestParams):
    """What ``tasks/get`` and ``tasks/cancel`` are given."""

    task_id: str


class Wait(NamedTuple):
    """A wait that is a task.

    Attributes:
        after: behind which event it looks.
        began_ms, until_ms: by the time of day.
        kinds: only these events.
    """

    after: str
    began_ms: int
    until_ms: int
    kinds: tuple[str, ...]

    @property
    def name(self) -> str:
        """The id of the task."""
        return f"wait-{self.after}-{self.began_ms}-{self.until_ms}-{'.'.join(self.kinds)}"

    @property
    def is_over(self) -> bool:
        """Whether its time is over."""
        return _now_ms() >= self.until_ms

    def look(self) -> dict[str, Any]:
        """Return the arguments of a call that looks once."""
        return {"after": self.after, "timeout_seconds": 0, "kinds": list(self.kinds)}

    def told(self, status: str, result: CallToolResult | None = None) -> dict[str, Any]:
        """Return how it stands, as the protocol has it."""
        now = _now_ms()
        found: dict[str, Any] = {
            "taskId": self.name,
            "status": status,
            "createdAt": _text(self.began_ms),
            "lastUpdatedAt": _text(now),
            "ttlMs": max(0, self.until_ms - self.began_ms),
            "pollIntervalMs": _POLL_MS,
        }
        if result is not None:
            found["result"] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return found


def is_declared(context: ServerRequestContext) -> bool:
    """Whether the client of a request knows tasks."""
    capabilities = context.session.client_capabilities
    return bool(capabilities and capabilities.extensions and EXTENSION in capabilities.extensions)


def seconds_of(given: dict[str, Any] | None) -> float:
    """Return how long a call would wait as a task; 0: it should only look, or is to be refused as any call."""
    try:
        asked = WaitForEvent.model_validate(given or {})
    except ValidationError:
        return 0.0
    return asked.timeout_seconds if "timeout_seconds" in asked.model_fields_set else LONGEST_WAIT


def look_first(given: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of the call with which a task begins: perhaps something is there already."""
    return {**(given or {}), "timeout_seconds": 0}


def begun(given: dict[str, Any] | None, seconds: float, first: CallToolResult) -> Wait | None:
    """Return the task of a call; None where its first look is all: it failed, or found something."""
    told = first.structured_content or {}
    if first.is_error or told.get("event") is not None:
        return None
    now = _now_ms()
    return Wait(str(told["cursor"]), now, now + int(seconds * 1000), tuple((given or {}).get("kinds") or ()))


def read(name: str) -> Wait:
    """Return a task by its id.

    Raises:
        MCPError: there is none of this id.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise MCPError(code=INVALID_PARAMS, message=f"there is no task {name[:60]!a}")
    return Wait(found[1], int(found[2]), int(found[3]), tuple(one for one in found[4].split(".") if one))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _text(at_ms: int) -> str:
    return datetime.fromtimestamp(min(at_ms, 4_000_000_000_000) / 1000, UTC).isoformat().replace("+00:00", "Z")
