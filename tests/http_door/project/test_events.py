"""Events by HTTP: pages and streams, and every way in which a number leads to what is behind it."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from swarm.eventlog.log import EventLog
from swarm.eventlog.values import Happened
from swarm.http_door.project.stream import Lost, Ring
from swarm.testing.terminal import wait_for
from tests.http_door.project.conftest import number_of

if TYPE_CHECKING:
    from tests.http_door.project.conftest import Project

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
PATIENT = {"Accept": "text/event-stream"}


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [one["number"] for one in found]


def test_a_page_goes_on_where_the_last_one_ended(project: Project) -> None:
    project.start()
    project.happen(*range(1, 31))
    _, first = project.ask("GET", "/events?limit=20")
    assert numbers(first["events"]) == list(range(1, 21))
    assert (first["last"], first["more"]) == (20, True)
    _, rest = project.ask("GET", f"/events?after={first['last']}")
    assert numbers(rest["events"]) == list(range(21, 31))
    assert (rest["last"], rest["more"]) == (30, False)
    assert project.ask("GET", "/events?after=30")[1] == {"events": [], "last": 30, "more": False}
    (_, said) = project.ask("GET", "/events?after=29")
    assert (said["events"][0]["kind"], said["events"][0]["subject"]) == ("agent.state", "developer@s30")


def test_a_stream_begins_with_the_next_event_or_behind_a_number(project: Project) -> None:
    project.start()
    project.happen(1, 2, 3)
    wait_for(lambda: project.ask("GET", "/status")[1]["project"]["event"] == 3, "the events in the ring")
    with project.watching() as new, project.watching(1) as back, project.watching(query="?after=0") as whole:
        wait_for(lambda: project.ask("GET", "/status")[1]["project"]["watchers"] == 3, "three watchers")
        project.happen(4, 5)
        assert numbers(new.events(2)) == [4, 5]
        assert numbers(back.events(4)) == [2, 3, 4, 5]
        assert numbers(whole.events(5)) == [1, 2, 3, 4, 5]
        project.happen(6)
        for one in (new, back, whole):
            assert number_of(one.event()["subject"]) == 6


def test_a_number_of_before_a_restart_goes_on_and_nothing_comes_twice(project: Project) -> None:
    """V6: the server is killed; the log goes on, and so does the cursor."""
    project.start()
    project.happen(*range(1, 6))
    with project.watching(0) as one:
        assert numbers(one.events(3)) == [1, 2, 3]
    project.end(9)
    project.happen(6, 7)
    project.start()
    with project.watching(3) as one:
        assert numbers(one.events(4)) == [4, 5, 6, 7]
        project.happen(8)
        assert one.event()["number"] == 8


def test_what_is_missing_is_declared(project: Project) -> None:
    """V6: older than what is kept, and from the future: one gap, never silence, never doubles."""
    project.root.mkdir(mode=0o700)
    log = EventLog(project.root, part=2000, most=4000)
    try:
        for number in range(200):
            log.append([Happened("agent.state", f"developer@s{number}", None, {"state": "x" * 50})])
    finally:
        log.close()
    project.start()
    with project.watching(0) as one:
        gap = one.event()
        assert gap["kind"] == "gap"
        assert gap["after"]["first"] == 1
        assert one.event()["number"] == gap["after"]["last"] + 1 == gap["number"] + 1
    with project.watching(10_000) as one:
        gap = one.event()
        assert (gap["kind"], gap["number"]) == ("gap", 0)
        assert (gap["after"]["first"], gap["after"]["last"]) == (201, 10_000)
        assert one.event()["kind"] == "gap"  # the old ones are not kept
        assert one.event()["number"] > 1


@pytest.mark.parametrize("number", ["-1", "9" * 16, "1a", "\u0661", "1, 2", "0x1", ""])
def test_what_is_no_number_is_refused(project: Project, number: str) -> None:
    project.start()
    if number.isascii():
        code, said = project.ask("GET", "/events", **{**PATIENT, "Last-Event-ID": number})
        assert (code, said["error"]) == (400, "validation_error")
    assert project.ask("GET", f"/events?after={number.encode().hex(' ').replace(' ', '%')}")[0] == 400


def test_who_falls_behind_the_ring_is_told_so_and_never_shown_a_hole() -> None:
    ring = Ring(None, kept=10)  # type: ignore[arg-type]  # nothing is read from a disk here
    for number in range(1, 8):
        ring._add(_event(number))
    place = ring.find(3)
    assert place is not None
    piece, behind = ring.take(place)
    assert [line for line in piece.split(b"\n") if line.startswith(b"id")] == [b"id: 4", b"id: 5", b"id: 6", b"id: 7"]
    assert ring.take(behind) == (b"", behind)
    for number in range(8, 16):
        ring._add(_event(number))
    with pytest.raises(Lost):
        ring.take(place)
    assert ring.find(4) is None
    assert ring.find(5) is not None
    assert ring.find(16) is None, "not yet"
    ring._add(_event(0))  # the log was begun anew
    with pytest.raises(Lost):
        ring.take(behind)
    assert ring.find(0) is not None


def _event(number: int) -> Any:
    from swarm.eventlog.values import LogEvent

    return LogEvent(number, 0, "agent.state", "x")


def test_a_stream_ends_with_the_server_at_once(project: Project) -> None:
    project.start()
    with project.watching() as one:
        began = time.monotonic()
        assert project.process is not None
        project.process.terminate()
        assert one.event() == {}
        assert project.end() == 0
        assert time.monotonic() - began < 30


def test_watchers_that_are_cut_off_at_random_get_each_event_once_and_in_order(project: Project) -> None:
    """Every watcher sees every event once and in order, however often it is cut off."""
    project.start()
    count, watchers = 300, 12
    wrong: list[str] = []
    cuts: list[int] = []

    def watch(seed: int) -> None:
        chance = random.Random(seed)
        seen: list[int] = []
        last = 0
        while len(seen) < count:
            with project.watching(last) as one:
                for _ in range(min(chance.randrange(1, 60), count - len(seen))):
                    event = one.event()
                    if not event or event["event"] == "lost":
                        break
                    seen.append(number_of(event["subject"]))
                    last = event["number"]
            cuts.append(seed)
        if seen != list(range(1, count + 1)):
            wrong.append(f"{seed}: {seen[:20]} … {len(seen)}")

    threads = [threading.Thread(target=watch, args=(seed,)) for seed in range(watchers)]
    for one in threads:
        one.start()
    for number in range(1, count + 1, 3):
        project.happen(number, number + 1, number + 2)
    for one in threads:
        one.join()
    assert wrong == []
    assert len(cuts) > watchers


def test_tasks_are_events_also_those_that_end_while_nobody_serves(project: Project) -> None:
    project.configure()
    project.start()
    first, second = project.submit("one"), project.submit("wait")
    project.until(first, "completed")
    wait_for(lambda: len(project.begun()) == 2, "both programs")
    project.end(9)
    project.gate.touch()
    project.lab.swarm.tasks.wait(second, 60)
    project.start()
    with project.watching(0) as one:
        states: dict[str, list[str]] = {first: [], second: []}
        while not all("completed" in found for found in states.values()):
            event = one.event()
            if event["kind"].startswith("task."):
                states[event["subject"]].append(event["after"]["state"])
    for found in states.values():
        assert found[-1] == "completed"
        assert len(set(found)) == len(found), "each is told once"


def test_agents_and_their_ends_are_events(project: Project) -> None:
    """The server's own look writes them: nothing else watches here."""
    project.start()
    with project.watching() as one:
        wait_for(lambda: project.ask("GET", "/status")[1]["project"]["watchers"] == 1, "a watcher")
        project.lab.swarm.start("fx", "developer", command="sleep 600")
        told: dict[str, str] = {}
        while "agent.added" not in told:
            event = one.event()
            told[event["kind"]] = event["subject"]
        assert (told["agent.added"], told["session.added"]) == ("developer@fx", "fx")
