"""Handle one hook event: note it, and start a delivery when it is time.

    <run folder>/events.jsonl   the last events, a line each
    <run folder>/waiter.lock    held by the one process that waits for messages, and its pid and start
    <run folder>/conversation.json   which conversation the program is in; it begins others by itself

The program's hooks run at the same time, so nothing here counts on their order.
"""

from __future__ import annotations

import os
import time

from swarm.machine import broker, locks, own, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS = "events.jsonl"
_OLD = "events.old.jsonl"
LOCK = "waiter.lock"
CONVERSATION = "conversation.json"
#: In print mode: a waiting hook would keep the program from ending. Waiting messages are delivered before it ends.
_AT_ONCE = "--now"
_LARGEST = 16 << 20
_ROLL_AT = 1 << 20
#: A pipe takes so much without a reader.
_PIPE = 60_000
#: The recorded fields of an event.
_KEPT = (
    *("hook_event_name", "session_id", "transcript_path", "tool_name", "tool_use_id", "permission_mode", "source"),
    *("reason", "error", "notification_type", "trigger", "agent_type", "duration_ms", "stop_hook_active"),
    "last_assistant_message",
)
_LONGEST = 500
#: So much of the end of the notes is read for the last events.
_TAIL = 1 << 14


def main(args: list[str]) -> int:
    """Record the event; with a command after it, become that command unless a process already waits for messages.

    Before the command stands ``NAME=VALUE``: the program has set the variable otherwise where it is in print mode.
    """
    run_dir, *more = args
    event = read()
    if broker.path():
        return _forward(event, more)
    note(run_dir, event)
    if not more:
        return 0
    kind = event.get("hook_event_name")
    (name, _, dialog), command = more[0].partition("="), more[1:]
    if os.environ.get(name, dialog) != dialog:
        if kind != "Stop":
            return 0
        command.append(_AT_ONCE)
    elif kind == "SessionStart":
        _note_conversation(run_dir, event)
    fd = own.open(os.path.join(run_dir, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if not locks.try_lock(fd):
        return 0
    _sign(fd)
    os.set_inheritable(fd, True)  # noqa: FBT003  # the command keeps the lock
    _hand_on(event)
    return os.execv(command[0], command)  # noqa: S606  # argv, no shell


def _forward(event: dict[str, object], more: list[str]) -> int:
    """Hand an event to the supervisor outside of the box, and say what the command there said."""
    wait = f"{more[0]}\0{os.environ.get(more[0].partition('=')[0], '')}" if more else ""
    text = broker.as_text(records.line(event))
    answer = broker.ask({"kind": "event", "event": text, "wait": wait})
    for fd, name in ((1, "out"), (2, "err")):
        os.write(fd, broker.as_bytes(answer.get(name, "")))
    return int(answer.get("code", 0))


def _note_conversation(run_dir: str, event: dict[str, object]) -> None:
    from swarm.machine.run_folder import runfiles

    runfiles.write(run_dir, CONVERSATION, {"id": event.get("session_id")})


def _sign(fd: int) -> None:
    """Record the holder of the lock: the supervisor must see it, and may not try the lock itself."""
    from swarm.machine import processes

    pid = os.getpid()
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d %d\n" % (pid, processes.start_of(pid) or 0), 0)


def is_awaited(run_dir: str) -> bool:
    """Whether a process waits for messages of an agent now."""
    from swarm.machine import processes

    try:
        with open(os.path.join(run_dir, LOCK), "rb") as file:
            pid, start = map(int, file.read(100).split())
    except (OSError, ValueError):
        return False
    return processes.is_alive(pid, start)


def newest(run_dir: str | os.PathLike[str]) -> Iterator[dict[str, object]]:
    """Give the last events, the newest first; of very long ones only some."""
    import json

    try:
        with open(os.path.join(run_dir, EVENTS), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:  # the first one was cut
            continue
        if isinstance(event, dict):
            yield event


def _hand_on(event: dict[str, object]) -> None:
    """Put the waiter's part of the event on its standard input."""
    told: dict[str, object] = {
        key: event[key] for key in ("hook_event_name", "transcript_path", "source", "prompt") if key in event
    }
    data = records.line(told)
    if len(data) > _PIPE:  # then the program's own record has the content of the prompt
        told.pop("prompt", None)
        data = records.line(told)
    read, write = os.pipe()
    os.write(write, data)
    os.close(write)
    os.dup2(read, 0)


def note(run_dir: str, event: dict[str, object]) -> None:
    """Add an event to the folder's notes, with one write."""
    kept = {key: _short(event[key]) for key in _KEPT if key in event}
    line = records.line({"at_ms": time.time_ns() // 1_000_000, **kept})
    path = os.path.join(run_dir, EVENTS)
    own.trust_state_of(run_dir)
    fd = own.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, line)
        if os.fstat(fd).st_size > _ROLL_AT:
            own.replace(path, os.path.join(run_dir, _OLD))
    finally:
        os.close(fd)


def _short(value: object) -> object:
    return value[:_LONGEST] if isinstance(value, str) else value


def read() -> dict[str, object]:
    """Return the event that stands on the standard input.

    Raises:
        ValueError, TypeError: there is none.
    """
    data = b""
    while piece := os.read(0, 1 << 16):
        data += piece
        if len(data) > _LARGEST:
            raise ValueError("the event is too large")
    found = records.loads(data)
    if not isinstance(found, dict):
        raise TypeError("the event is no object")
    return found
