"""Values as data for machines, for the doors that print or serve them; each is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PLACES = {
    "approval_data": "swarm.approvals.data",
    "event_data": "swarm.eventlog.data",
    **dict.fromkeys(("queued_data", "taken_data", "task_word"), "swarm.messages.data"),
    **dict.fromkeys(("agent_data", "session_data"), "swarm.sessions.data"),
    "usage_data": "swarm.usage.data",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(name)
    return getattr(import_module(_PLACES[name]), name)
