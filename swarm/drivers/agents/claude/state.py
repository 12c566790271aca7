"""What Claude Code says of itself: ``sessions/<pid>.json`` in its configuration folder.

It is the only source that is right in every case; hooks do not fire for a refused or interrupted tool call, and the
pane's title is not kept up by every version.  Nobody documents it, so it is read with suspicion: a file of another
process, an unknown word or a broken one is no statement.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from swarm import fsio
from swarm.domain.errors import SwarmError
from swarm.domain.status import OwnWords
from swarm.pane import events
from swarm.pane.facts import one_line

if TYPE_CHECKING:
    from pathlib import Path

_STATES = {"busy": "working", "shell": "working", "idle": "idle", "waiting": "waiting"}
FOR_PERMISSION = "for permission to use a tool"
#: In the program's words → in ours; anything else is shown as it is.
_WAITS = {
    "permission prompt": FOR_PERMISSION,
    "dialog open": "for an answer: a dialog is open",
    "user input": "for an answer",
    "input needed": "for an answer",
}
SOURCE = "Claude Code's session file"
#: Events with which a turn begins or ends.
_TURNS = frozenset({"SessionStart", "UserPromptSubmit", "Stop", "StopFailure"})
#: Why a turn ended in an error → what it waits for.
_NEEDS = {
    "rate_limit": "for its rate limit to pass; then tell it to go on",
    "authentication_failed": "for you to log in",
    "oauth_org_not_allowed": "for you to log in",
    "billing_error": "for you to settle its account",
}
_TAIL = 1 << 14


def read(folder: Path, pid: int, start: int) -> OwnWords | None:
    """Return what the program of a process says; None when it says nothing.

    Args:
        folder: its configuration folder.
        start: when the process began, as /proc tells; 0 when unknown.
    """
    try:
        record = json.loads(fsio.read_small(folder / "sessions" / f"{pid}.json"))
    except (OSError, SwarmError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("pid") != pid or _of_another(record, start):
        return None
    status, wait = record.get("status"), record.get("waitingFor")
    if not isinstance(status, str):
        return None
    since = record.get("statusUpdatedAt")
    state = _STATES.get(status, "unknown")
    detail = _WAITS.get(wait, one_line(wait)) if state == "waiting" and isinstance(wait, str) else ""
    if state == "unknown":
        detail = one_line(f"it says {status!r}, which this version of swarm does not know")
    return OwnWords(SOURCE, state, detail, since if type(since) is int else 0)


def stopped_by(run_dir: Path) -> str:
    """Return what a program needs a person for whose last turn ended on an error of the API; else nothing.

    Its session file says idle then, as after any turn.
    """
    try:
        with (run_dir / events.EVENTS).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:  # the first one was cut
            continue
        if isinstance(event, dict) and event.get("hook_event_name") in _TURNS:
            failed = event["hook_event_name"] == "StopFailure"
            return _NEEDS.get(str(event.get("error")), "") if failed else ""
    return ""


def _of_another(record: dict[str, Any], start: int) -> bool:
    """Whether the file was left behind by a killed program whose pid has been given away again."""
    began = record.get("procStart")
    return bool(start) and isinstance(began, str) and began.isdigit() and int(began) != start
