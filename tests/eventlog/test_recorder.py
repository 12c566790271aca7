"""What changed is written into the log once, whoever sees it first; what nobody saw is a gap."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from swarm.eventlog import changes
from swarm.eventlog.log import EventLog
from swarm.eventlog.recorder import Recorder
from swarm.eventlog.values import GAP

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component


def table(**states: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return a session with agents in these states."""
    found: dict[tuple[str, str], dict[str, Any]] = {("session", "fx"): {"base_ref": "main"}}
    return found | {
        ("agent", f"{name}@fx"): {"state": state, "detail": f"is {state}", "role": name}
        for name, state in states.items()
    }


def told(state: Path) -> list[tuple[str, str]]:
    return [(one.kind, one.subject) for one in EventLog(state).page().events]


def test_two_who_see_the_same_write_it_once(tmp_path: Path) -> None:
    one, other = Recorder(tmp_path), Recorder(tmp_path)
    for recorder in (one, other):
        recorder.record(table(dev="working"))
    for recorder in (other, one):
        recorder.record(table(dev="idle"))

    events = EventLog(tmp_path).page().events
    assert [(event.kind, event.subject) for event in events] == [
        ("session.added", "fx"),
        ("agent.added", "dev@fx"),
        ("agent.state", "dev@fx"),
    ]
    assert events[-1].before == {"state": "working", "detail": "is working"}
    assert events[-1].after == {"state": "idle", "detail": "is idle"}


def test_a_look_at_some_things_tells_no_end_of_others(tmp_path: Path) -> None:
    Recorder(tmp_path).record({**table(dev="idle"), ("approval", "abc"): {"session": "fx", "agent": "dev"}})

    Recorder(tmp_path).record(table(dev="idle"), (changes.SESSION, changes.AGENT))
    assert told(tmp_path)[-1] == ("approval.opened", "abc")
    Recorder(tmp_path).record(table(dev="idle"))
    assert told(tmp_path)[-1] == ("approval.answered", "abc")
    Recorder(tmp_path).record({})
    assert told(tmp_path)[-2:] == [("agent.removed", "dev@fx"), ("session.removed", "fx")]


def test_steps_of_the_work_are_no_events_but_another_reason_to_wait_is_one(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.record(table(dev="working"))
    before = len(told(tmp_path))

    for state, detail in (("working", "step 2"), ("waiting", "Bash"), ("waiting", "Edit")):
        recorder.record({**table(), ("agent", "dev@fx"): {"state": state, "detail": detail, "role": "dev"}})

    assert told(tmp_path)[before:] == [("agent.state", "dev@fx")] * 2


def test_a_time_without_a_watcher_is_declared_and_none_while_another_one_watches(tmp_path: Path) -> None:
    first = Recorder(tmp_path)
    first.begin()
    first.record(table(dev="working"))
    second = Recorder(tmp_path)
    second.begin()
    first.close()
    third = Recorder(tmp_path)
    third.begin()  # the second one still watches
    assert GAP not in [kind for kind, _ in told(tmp_path)]
    second.close()
    third.close()
    ended = os.stat(tmp_path / "events" / "watchers.lock").st_mtime_ns // 1_000_000

    fourth = Recorder(tmp_path)
    fourth.begin()
    fourth.record(table(dev="idle"))
    fourth.close()

    gap, state = EventLog(tmp_path).page().events[-2:]
    assert (gap.kind, state.kind) == (GAP, "agent.state")
    assert gap.after is not None
    assert gap.after["from_ms"] == ended <= gap.after["until_ms"]
    assert "nobody watched" in gap.after["reason"]


def test_the_table_is_rebuilt_from_the_log_when_it_is_lost_or_broken(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.begin()
    recorder.record(table(dev="working", rev="idle"))
    recorder.close()
    before = told(tmp_path)

    for broken in (b"", b'{"at": 99999, "table": []}', b'{"at": 0, "table": [["agent"]]}'):
        (tmp_path / "events" / "seen.json").write_bytes(broken)
        Recorder(tmp_path).record(table(dev="working", rev="idle"))
        assert told(tmp_path) == before
