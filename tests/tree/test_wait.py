"""Waiting for events: with a cursor, without taking them, with a bound; questions come too; cycles are told at once."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from swarm import WaitCycle
from swarm.agents import waits
from swarm.agents.waits import Wait
from swarm.testing.terminal import wait_for
from tests.support.tree import as_agent, code_of, quiet, subtree, worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm import Awaited, Swarm
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture
def lab(panes: PaneLab) -> PaneLab:
    return quiet(panes)


def test_an_event_is_read_again_until_its_cursor_is_handed_back(lab: PaneLab) -> None:
    """TREE-22, 25: it does not consume; `after` acknowledges."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    for name in ("a", "b"):
        worker(lab, name, by=lead)
        as_agent(lab, name, f"auth-{name}").tree.notify_parent("success", name)

    first = lead.tree.wait_for_event(timeout=0)
    again = lead.tree.wait_for_event(timeout=0)
    assert first == again
    assert first.event is not None
    assert (first.event.worker, first.more) == ("a@auth-a", 1)
    second = lead.tree.wait_for_event(first.cursor, timeout=0)
    assert second.event is not None
    assert (second.event.worker, second.more) == ("b@auth-b", 0)
    assert lead.tree.wait_for_event(timeout=0) == second  # the cursor that was handed in is kept
    over = lead.tree.wait_for_event(second.cursor, timeout=0)
    assert (over.event, over.cursor) == (None, second.cursor)
    assert (
        lead.tree.wait_for_event(first.cursor, timeout=0) == second
    )  # an older one reads again, and takes nothing back
    assert lead.tree.wait_for_event(timeout=0).event is None


def test_a_client_that_gives_up_loses_no_event(lab: PaneLab) -> None:
    """Two clients: one gives up in the middle of its wait, then the event comes; the other one gets it."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    worker(lab, "tests", by=lead)
    assert lead.tree.wait_for_event(timeout=0.3).event is None
    found: list[Awaited] = []
    ghost = threading.Thread(target=lambda: found.append(as_agent(lab, "lead", "auth").tree.wait_for_event(timeout=20)))
    ghost.start()
    as_agent(lab, "tests", "auth-tests").tree.notify_parent("success", "done")
    ghost.join()

    assert found[0].event is not None
    assert lead.tree.wait_for_event(timeout=0).event == found[0].event


def test_a_wait_ends_soon_after_the_event(lab: PaneLab) -> None:
    """Figure 2: from the completion to the event in the parent's queue."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    worker(lab, "tests", by=lead)
    helper = as_agent(lab, "tests", "auth-tests")
    seen: list[float] = []

    def look() -> None:
        assert lead.tree.wait_for_event(timeout=30).event is not None
        seen.append(time.monotonic())

    waiter = threading.Thread(target=look)
    waiter.start()
    wait_for(lambda: waits.look(lead._world), "the wait to begin")
    helper.tree.notify_parent("success", "done")
    told = time.monotonic()
    waiter.join()
    assert seen[0] - told < 1.0  # 0.1 on a machine that is not busy


def test_a_question_of_a_child_ends_the_wait(lab: PaneLab) -> None:
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    worker(lab, "tests", by=lead)
    sent = as_agent(lab, "tests", "auth-tests").send("parent", "which database?", expects_reply=True)

    found = lead.tree.wait_for_event(timeout=0)
    assert found == lead.tree.wait_for_event(timeout=0)
    assert found.event is not None
    assert (found.event.kind, found.event.about) == ("ChildAsks", sent[0].id)
    assert found.event.text == "which database?"
    assert lead.tree.wait_for_event(found.cursor, timeout=0).event is None
    as_agent(lab, "lead", "auth").messages.reply(sent[0].id, "sqlite")


def test_kinds_choose_and_wrong_input_is_refused(lab: PaneLab) -> None:
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    worker(lab, "tests", by=lead)
    helper = as_agent(lab, "tests", "auth-tests")
    helper.tree.notify_parent("success", "done")
    helper.tree.notify_parent("failure", "not done")

    found = lead.tree.wait_for_event(timeout=0, kinds=["CompletionCorrected"])
    assert found.event is not None
    assert found.event.status == "failure"
    for after in ("x", "e-1", "e99", "", "e" + "9" * 30, "e1\n"):
        assert code_of(lambda after=after: lead.tree.wait_for_event(after, 0)) == "USAGE"  # type: ignore[misc]
    for timeout in (-1.0, 1e9, float("nan"), float("inf")):
        assert code_of(lambda timeout=timeout: lead.tree.wait_for_event(None, timeout)) == "USAGE"  # type: ignore[misc]
    assert code_of(lambda: lead.tree.wait_for_event(kinds=["Nothing"])) == "USAGE"


def test_a_long_wait_tells_that_it_goes_on(lab: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm.tree import waiting

    monkeypatch.setattr(waiting, "TELL_EVERY", 0.1)
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.05)
    gone: list[float] = []
    assert lab.swarm.tree.wait_for_event(timeout=0.5, progress=gone.append).event is None
    assert len(gone) >= 2


WAITS: dict[str, Callable[[Swarm], object]] = {
    "read": lambda swarm: swarm.tree.wait_for_event(timeout=120),
    "take": lambda swarm: swarm.wait_for_event(120),
    "take some": lambda swarm: swarm.wait_for_event(120, session="auth-tests", agents=["tests"]),
}


@pytest.mark.parametrize("way", WAITS)
def test_who_closes_a_cycle_is_told_at_once(lab: PaneLab, way: str) -> None:
    """A parent that waits for its child, which waits for its parent."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    worker(lab, "tests", by=lead)
    waiter = threading.Thread(target=WAITS[way], args=(as_agent(lab, "lead", "auth"),))
    waiter.start()
    wait_for(lambda: waits.look(lead._world), "the wait of the lead")
    helper = as_agent(lab, "tests", "auth-tests")

    assert code_of(lambda: helper.wait_for(["lead@auth"], "done", timeout=60)) == "WAIT_CYCLE"

    helper.tree.notify_parent("success", "done")
    waiter.join()
    assert waits.look(lead._world) == {}


CYCLES = {
    "two": ({"a": [("b", True)], "b": [("a", True)]}, "b", ["b", "a", "b"]),
    "three": ({"a": [("b", True)], "b": [("c", True)], "c": [("a", True)]}, "c", ["c", "a", "b", "c"]),
    "itself": ({"a": [("a", True)]}, "a", ["a", "a"]),
    "one of several is free": ({"a": [("b", True)], "b": [("a c", False)]}, "b", []),
    "all of several": ({"a": [("b", True)], "b": [("a c", True)]}, "b", ["b", "a", "b"]),
    "another wait can end": ({"a": [("b", True)], "b": [("a", True), ("c", True)]}, "b", []),
    "a chain": ({"a": [("b", True)], "b": [("c", True)]}, "b", []),
    "beside a cycle": ({"a": [("b", True)], "b": [("a", True)], "d": [("c", True)]}, "d", []),
    "behind a cycle": ({"a": [("b", True)], "b": [("a", True)], "d": [("a", True)]}, "d", ["a", "b", "a"]),
}


@pytest.mark.parametrize(("edges", "me", "cycle"), CYCLES.values(), ids=CYCLES)
def test_a_cycle_is_found_and_named(edges: dict[str, list[tuple[str, bool]]], me: str, cycle: list[str]) -> None:
    known = {who: [Wait(tuple(to.split()), every) for to, every in several] for who, several in edges.items()}
    if not cycle:
        waits.refuse_cycle(known, me)
        return
    with pytest.raises(WaitCycle, match=" waits for ".join(cycle)) as raised:
        waits.refuse_cycle(known, me)
    assert raised.value.facts["cycle"] == cycle
