"""The tool for which a waiting agent needs permission. Standard library only: supervisors tell it, too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swarm.approvals import requests
from swarm.machine import hook_events
from swarm.machine.run_folder.program_facts import one_line

if TYPE_CHECKING:
    from pathlib import Path

#: With these a program asks; after any other event it does not.
_ASKS = frozenset({"PreToolUse", "PermissionRequest", "Notification"})


def blocked(state: str | Path, run_dir: str | Path, session: str, agent: str) -> dict[str, Any] | None:
    """Return the tool, since when, and the request that answers it; None where none of that is known.

    The agent's own request says it; without one the last event that a hook of its program wrote down.

    Args:
        state: the ``.swarm`` folder.
    """
    asked = requests.oldest(os.path.join(state, "approvals"), session, agent)
    if asked is not None:
        return {"tool": one_line(asked["tool"]), "request": asked["id"], "since_ms": asked["asked_ms"]}
    for event in hook_events.newest(run_dir):
        if event.get("hook_event_name") not in _ASKS:
            return None
        tool, at_ms = event.get("tool_name"), event.get("at_ms")
        if isinstance(tool, str) and isinstance(at_ms, int):
            return {"tool": one_line(tool), "request": "", "since_ms": at_ms}
    return None
