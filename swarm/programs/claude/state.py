"""Claude Code's own report: ``sessions/<pid>.json`` in its configuration folder.

It is the only source that is right in every case; hooks do not fire for a refused or interrupted tool call, and the
pane's title is not kept up by every version.  Nobody documents it, so it is read with suspicion: a file of another
process, an unknown word or a broken one is no statement.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from swarm.machine import hook_events, processes
from swarm.machine.run_folder import runfiles
from swarm.machine.run_folder.program_facts import is_reviewing, one_line
from swarm.programs.claude.moved import moved_to
from swarm.programs.status import OwnWords

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from swarm.machine.run_folder.program_facts import Process

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
#: The error that ended a turn → the reason to wait.
_NEEDS = {
    "rate_limit": "for its rate limit to pass; then tell it to go on",
    "authentication_failed": "for you to log in",
    "oauth_org_not_allowed": "for you to log in",
    "billing_error": "for you to settle its account",
}
#: How long it may be idle before its first prompt arrives; without hooks no event reports the prompt.
_FIRST_PROMPT_MS = 120_000
#: How long after a prompt the session file may still show the state before.
_PROMPT_MS = 10_000
#: For how long it is no wonder that a started program has said nothing.
_STARTING_MS = 60_000


def read(folder: str | Path, pid: int, start: int) -> OwnWords | None:
    """Return the state that the program of a process reports; None without a report.

    Args:
        folder: its configuration folder.
        start: when the process began, as /proc tells; 0 when unknown.
    """
    record = runfiles.read_any(os.path.join(folder, "sessions", f"{pid}.json"))
    if record is None or record.get("pid") != pid or _of_another(record, start):
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


def after_turn(run_dir: str | Path, said: OwnWords, started_ms: int, *, asked: bool) -> OwnWords:
    """Return the meaning of *idle* after its hooks' last report: its session file says the same in other cases, too.

    So it does before the first prompt is put, for a moment after one was, and after a turn that ended on an error.
    After any other turn it says last what the model said last.

    Args:
        asked: it was started with a first prompt.
    """
    event = _last_turn(run_dir)
    now_ms, at_ms = time.time_ns() // 1_000_000, _at(event)
    name = event.get("hook_event_name") if event is not None else None
    fresh = at_ms < started_ms or (name == "SessionStart" and event is not None and event.get("source") == "startup")
    if fresh and asked and now_ms - said.since_ms < _FIRST_PROMPT_MS:
        return said._replace(state="starting", detail="its first prompt is on the way")
    if name == "UserPromptSubmit" and said.since_ms < at_ms and now_ms - at_ms < _PROMPT_MS:
        return said._replace(state="working", since_ms=at_ms)
    need = _NEEDS.get(str(event.get("error")), "") if event is not None and name == "StopFailure" else ""
    if need:
        return said._replace(state="waiting", detail=need)
    last = event.get("last_assistant_message") if event is not None and name == "Stop" else None
    return said._replace(detail=one_line(last)) if isinstance(last, str) else said


def _last_turn(run_dir: str | Path) -> dict[str, Any] | None:
    """Return the last event with which a turn began or ended; None when there was no event at all.

    Of a long turn that is only its last one, whatever it is.
    """
    last: dict[str, Any] | None = None
    for event in hook_events.newest(run_dir):
        if event.get("hook_event_name") in _TURNS:
            return event
        last = last or event
    return last


def _at(event: dict[str, Any] | None) -> int:
    at_ms = event.get("at_ms") if event is not None else None
    return at_ms if isinstance(at_ms, int) else 0


def _of_another(record: dict[str, Any], start: int) -> bool:
    """Whether the file was left behind by a killed program whose pid has been given away again."""
    began = record.get("procStart")
    return bool(start) and isinstance(began, str) and began.isdigit() and int(began) != start


def number_of(process: Process) -> tuple[int, int]:
    """Return the number and the start that a program reports as its own; in a box it has another number."""
    seen = processes.in_box(process.pid) if process.boxed else None
    if seen is None:
        return process.pid, process.pid_start
    return processes.NUMBER_IN_BOX, seen.start


def own_words(run_dir: str | Path, process: Process, told: Mapping[str, str]) -> OwnWords | None:
    """Return the state that a living program reports; None without a report.

    Args:
        told: what was noted about the program when it was launched.
    """
    said = read(told.get("config", ""), *number_of(process))
    if said is not None and said.state == "waiting" and said.detail == FOR_PERMISSION and is_reviewing(run_dir):
        said = said._replace(state="working", detail="its reviewer decides about a tool")
    if said is not None and said.state == "idle":
        said = after_turn(run_dir, said, process.started_ms, asked=told.get("asked") == "yes")
    if said is not None:
        return said._replace(since_ms=max(said.since_ms, process.started_ms))
    if time.time_ns() // 1_000_000 - process.started_ms > _STARTING_MS:
        return None  # silence is no statement
    return OwnWords(SOURCE, "starting", "it has not reported yet", process.started_ms)


def elsewhere(run_dir: str | Path, pid: int, told: Mapping[str, str]) -> str:
    """Return the background session in which the conversation goes on."""
    name = moved_to(told["config"], run_dir, pid) if told.get("config") else ""
    return f"background session {name} of Claude Code (claude attach {name}, claude stop {name})" if name else ""
