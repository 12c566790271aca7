"""The log of events: numbers that go on, pages, gaps, and several writers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from swarm.eventlog.log import EventLog
from swarm.eventlog.values import GAP, Happened

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.eventlog.values import LogEvent

pytestmark = pytest.mark.component


def happened(name: str, state: str = "idle") -> Happened:
    return Happened("agent.state", f"{name}@fx", {"state": "working"}, {"state": state})


def numbers(log: EventLog, after: int = 0) -> list[int]:
    return [one.number for one in log.page(after).events]


def test_events_are_numbered_and_read_behind_a_number(tmp_path: Path) -> None:
    log = EventLog(tmp_path)

    assert log.append([happened("a"), happened("b")]) == 2
    assert log.append([happened("c")]) == 3

    page = EventLog(tmp_path).page(after=1)
    assert [(one.number, one.subject, one.after) for one in page.events] == [
        (2, "b@fx", {"state": "idle"}),
        (3, "c@fx", {"state": "idle"}),
    ]
    assert (page.last, page.more) == (3, False)
    assert log.page(3).events == ()
    assert log.page(3).last == 3


def test_a_page_ends_at_its_limit_and_the_next_one_goes_on(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.append([happened(f"a{number}") for number in range(5)])

    first = log.page(limit=2)
    second = log.page(first.last, limit=2)
    third = log.page(second.last, limit=2)

    assert [[one.number for one in page.events] for page in (first, second, third)] == [[1, 2], [3, 4], [5]]
    assert [page.more for page in (first, second, third)] == [True, True, False]


def test_reading_makes_nothing(tmp_path: Path) -> None:
    assert EventLog(tmp_path).page().events == ()
    assert EventLog(tmp_path).last_number() == 0
    assert os.listdir(tmp_path) == []


def test_it_is_private(tmp_path: Path) -> None:
    EventLog(tmp_path).append([happened("a")])

    folder = tmp_path / "events"
    assert {one.stat().st_mode & 0o777 for one in (folder, folder / "log")} == {0o700}
    assert {one.stat().st_mode & 0o777 for one in (folder / "log").iterdir()} == {0o600}


def test_numbers_go_on_after_a_restart_and_what_is_too_old_is_a_gap(tmp_path: Path) -> None:
    sizes = {"part": 1000, "most": 3000}
    for number in range(100):  # each time another process
        log = EventLog(tmp_path, **sizes)
        assert log.append([happened(f"a{number}")]) == number + 1
        log.close()

    page = EventLog(tmp_path, **sizes).page(after=3)

    gap, *rest = page.events
    assert gap.kind == GAP
    assert gap.after is not None
    assert gap.after["first"] == 4
    assert "older events were removed" in gap.after["reason"]
    assert gap.number == gap.after["last"] == rest[0].number - 1
    assert [one.number for one in rest] == list(range(rest[0].number, 101))
    kept = sum(one.stat().st_size for one in (tmp_path / "events" / "log").glob("*.log"))
    assert kept <= 3000 + 2 * 1000
    assert numbers(EventLog(tmp_path, **sizes), page.last) == []


def test_a_damaged_event_is_a_gap_and_hides_no_other(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.append([happened(name) for name in "abc"])
    log.close()
    path = tmp_path / "events" / "log" / "active.log"
    path.write_bytes(path.read_bytes().replace(b'"b@fx"', b'"x@fx"'))

    events = EventLog(tmp_path).page().events

    assert [(one.number, one.kind) for one in events] == [(1, "agent.state"), (2, GAP), (3, "agent.state")]
    assert events[1].after == {"reason": "what stood there cannot be read any more", "first": 2, "last": 2}


def test_a_number_that_the_log_never_gave_is_told_as_a_gap_and_all_follows(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.append([happened("a")])

    gap, one = log.page(after=17).events

    assert (gap.kind, gap.number, one.number) == (GAP, 0, 1)
    assert gap.after is not None
    assert "begun anew" in gap.after["reason"]


_WRITE = """
import sys
from pathlib import Path
from swarm.eventlog.log import EventLog
from swarm.eventlog.values import Happened

log = EventLog(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    log.append([Happened("agent.state", f"{sys.argv[2]}-{number}@fx", None, {"state": "idle"})])
    print(number, flush=True)
"""


def test_several_writers_of_which_one_is_killed_lose_nothing_that_was_written(tmp_path: Path) -> None:
    argv = [sys.executable, "-P", "-c", _WRITE, str(tmp_path)]
    with subprocess.Popen([*argv, "killed", "100000"], stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        others = [subprocess.Popen([*argv, name, "40"], stdout=subprocess.DEVNULL) for name in ("a", "b")]
        said = [doomed.stdout.readline() for _ in range(20)]
        doomed.kill()
        said += doomed.stdout.readlines()
        assert [one.wait() for one in others] == [0, 0]
    whole = [int(line) for line in said if line.endswith("\n")]
    EventLog(tmp_path).append([happened("last")])

    events: list[LogEvent] = []
    after, more = 0, True
    while more:
        page = EventLog(tmp_path).page(after)
        events += page.events
        after, more = page.last, page.more

    assert [one.number for one in events] == list(range(1, len(events) + 1))
    subjects = [one.subject for one in events]
    assert len(set(subjects)) == len(subjects)
    for name in ("a", "b"):
        assert [one for one in subjects if one.startswith(f"{name}-")] == [f"{name}-{at}@fx" for at in range(40)]
    assert {f"killed-{at}@fx" for at in whole} <= set(subjects)
    assert subjects[-1] == "last@fx"


def test_whoever_follows_gets_each_event_once_also_of_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    begun = threading.Event()

    def write() -> None:
        begun.wait(60)
        for number in range(20):
            log.append([happened(f"a{number}")])

    writer = threading.Thread(target=write)
    writer.start()
    found = []
    reader = EventLog(tmp_path).follow(0)
    begun.set()
    for event in reader:
        found.append(event.number)
        if len(found) == 20:
            break
    writer.join()

    assert found == list(range(1, 21))
    assert list(EventLog(tmp_path).follow(18, timeout=0.01))[-1].number == 20
    assert list(EventLog(tmp_path).follow(None, timeout=0.01)) == []
