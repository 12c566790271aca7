"""How often an agent is told, and when the sender."""

from __future__ import annotations

import json

import pytest

from swarm.delivery.retries import TRIES, Memory, from_record, to_record

pytestmark = pytest.mark.unit

PAUSE = 30_000
MINUTE = 60_000


def test_a_message_is_announced_four_times_with_growing_pauses_then_its_sender_is_told() -> None:
    memory, now, times = Memory(), 1_000, []
    memory.update(["m"], now)
    while not memory.hopeless(now, PAUSE):
        if memory.due(now):
            times.append(now)
            memory.announced(["m"], now, PAUSE)
        now = memory.next()

    assert [t - times[0] for t in times] == [0, PAUSE, PAUSE + 2 * MINUTE, PAUSE + 12 * MINUTE]
    assert len(times) == TRIES
    assert now - times[-1] == PAUSE
    memory.notes["m"].told = True
    assert memory.hopeless(now, PAUSE) == ()
    assert memory.next() == 0


def test_a_new_message_is_announced_at_once_and_the_old_ones_keep_their_time() -> None:
    memory = Memory()
    memory.update(["a"], 0)
    memory.announced(["a"], 0, PAUSE)
    memory.update(["a", "b"], 10)

    assert memory.due(10) == ("b",)


def test_what_waits_no_longer_is_forgotten() -> None:
    memory = Memory()
    memory.update(["a"], 0)
    memory.announced(["a"], 0, PAUSE)
    memory.update([], 10)

    assert memory.notes == {}
    assert memory.next() == 0


def test_a_pane_that_takes_no_keys_is_looked_at_less_and_less_often() -> None:
    memory = Memory()

    looks = [memory.held(0) for _ in range(9)]

    assert looks == [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000]


def test_the_sender_of_what_could_not_be_typed_for_long_is_told() -> None:
    memory = Memory()
    memory.update(["m"], 1_000)

    assert memory.hopeless(1_000 + 12 * MINUTE, PAUSE) == ()
    assert memory.hopeless(1_000 + 14 * MINUTE, PAUSE) == ("m",)


def test_it_is_remembered_within_a_boot_and_counted_anew_after_another() -> None:
    memory = Memory(line="x", looks=3)
    memory.update(["m"], 5_000)
    memory.announced(["m"], 5_000, PAUSE)
    record = json.loads(json.dumps(to_record(memory, "boot")))

    assert from_record(record, "boot") == memory
    later = from_record(record, "another")
    later.update(["m"], 70)
    assert later.notes["m"].tries == 1
    assert later.due(70) == ("m",)
    assert later.hopeless(70, PAUSE) == ()


@pytest.mark.parametrize("record", [None, {}, {"messages": 3}, {"messages": {"a": [1]}, "line": "", "looks": 0}])
def test_a_record_that_is_none_is_as_good_as_nothing(record: dict[str, object] | None) -> None:
    assert from_record(record, "boot") == Memory()
