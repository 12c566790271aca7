"""Readers of the model get every change in order, or are told that they were too slow."""

from __future__ import annotations

import threading

import pytest

from swarm.eventlog.values import Happened
from swarm.live.feed import Feed
from swarm.live.values import LOST

pytestmark = pytest.mark.unit


def publish(feed: Feed, *names: str) -> None:
    feed.publish([Happened("agent.state", name, None, {"state": "idle"}) for name in names])


def test_changes_come_in_order_behind_a_revision() -> None:
    feed = Feed("e")
    publish(feed, "a", "b")
    publish(feed, "c")

    assert [(one.revision, one.subject) for one in feed.since(0)] == [(1, "a"), (2, "b"), (3, "c")]
    assert [one.subject for one in feed.since(2)] == ["c"]
    assert [one.subject for one in feed.since("e-1")] == ["b", "c"]
    assert feed.since(3) == ()
    assert feed.snapshot().id == "e-3"
    assert feed.since(0)[-1].id == "e-3"


@pytest.mark.parametrize("after", [-1, 4, 99, "other-2", "e-", "e-x", "nonsense"])
def test_what_this_model_never_had_is_lost(after: int | str) -> None:
    feed = Feed("e")
    publish(feed, "a", "b", "c")

    (one,) = feed.since(after)

    assert (one.kind, one.revision) == (LOST, 3)


def test_a_reader_behind_the_ring_is_lost_and_sees_no_hole() -> None:
    feed = Feed("e", ring=3)
    publish(feed, *"abcde")

    assert [one.subject for one in feed.since(2)] == ["c", "d", "e"]
    assert [one.kind for one in feed.since(1)] == [LOST]
    assert [one.kind for one in feed.changes(1, None)] == [LOST]


def test_a_reader_that_waits_is_woken_and_ends_with_the_model() -> None:
    feed = Feed("e")
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.extend(c.revision for c in feed.changes(0, None))) for _ in "ab"]
    for thread in threads:
        thread.start()

    publish(feed, "a", "b")
    publish(feed, "c")
    feed.close()
    for thread in threads:
        thread.join(60)

    assert sorted(seen) == [1, 1, 2, 2, 3, 3]
    assert feed.wait(3, None) == ()


def test_a_bug_in_the_model_reaches_its_readers_after_what_they_had_not_read() -> None:
    feed = Feed("e")
    publish(feed, "a")
    feed.close(ValueError("broken"))

    assert [one.subject for one in feed.wait(0, None)] == ["a"]
    with pytest.raises(ValueError, match="broken"):
        feed.wait(1, None)


def test_nothing_comes_within_the_time() -> None:
    assert Feed("e").wait(0, 0.0) == ()
    assert list(Feed("e").changes(0, 0.0)) == []


def test_a_call_comes_at_each_change_until_it_is_ended() -> None:
    feed = Feed("e")
    calls: list[int] = []
    end = feed.call(lambda: calls.append(1))

    publish(feed, "a")
    end()
    publish(feed, "b")

    assert calls == [1]
