"""Events as data for machines: what ``--json`` prints, and what servers answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit.words import iso

if TYPE_CHECKING:
    from swarm.eventlog.values import LogEvent


def event_data(event: LogEvent) -> dict[str, Any]:
    """Return an event for machines."""
    return {
        "number": event.number,
        "kind": event.kind,
        "subject": event.subject,
        "before": event.before,
        "after": event.after,
        "at": iso(event.at_ms),
    }
