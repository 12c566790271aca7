"""How a component does, from look to look, and when it is looked at again."""

from __future__ import annotations

import pytest

from swarm.services.health import IDLE, STRANGER, WORKING, Watch
from swarm.services.values import SILENT, Component

pytestmark = pytest.mark.unit
URL = "http://127.0.0.1:9000"


def agent(state: str = "idle", *, is_ours: bool = True) -> Component:
    says = {"interfaces": ["statusable", "taskable"]}
    return Component("agent", "rev", state, url=URL, says=says, is_ours=is_ours)


def colours(watch: Watch, now: float) -> list[tuple[str, str, float]]:
    return [(one.colour, one.word, one.age) for one in watch.seen(now)]


def test_green_yellow_red_and_green_again() -> None:
    """DISC-04, C-34: each with a word and the age of what is shown."""
    watch = Watch()
    watch.heard((), [agent("working")], 100)
    assert colours(watch, 101) == [("green", "healthy", 1)]
    for number, colour in enumerate(("yellow", "yellow", "red", "red"), 1):
        watch.heard([URL], [], 100 + number)
        assert colours(watch, 110)[0][::2] == (colour, 10)
    (lost,) = watch.seen(110)
    assert (lost.word, lost.component.state) == ("unreachable", "working")
    watch.heard([URL], [agent()], 111)
    assert colours(watch, 111) == [("green", "healthy", 0)]


def test_one_that_is_lost_is_forgotten_after_a_while_and_comes_back() -> None:
    """DISC-05, C-34: shown red first, dropped later."""
    watch = Watch(keep=300)
    watch.heard((), [agent()], 0)
    for now in range(1, 300):
        watch.heard([URL], [], now)
    assert colours(watch, 299) == [("red", "unreachable", 299)]
    watch.heard([URL], [], 300)
    assert watch.seen(300) == ()
    watch.heard((), [agent()], 301)
    assert colours(watch, 301) == [("green", "healthy", 0)]


def test_one_at_work_is_asked_more_often() -> None:
    """DISC-07; a stranger is asked seldom."""
    for component, pause in ((agent("working"), WORKING), (agent(), IDLE), (agent(is_ours=False), STRANGER)):
        watch = Watch()
        watch.heard((), [component], 0)
        assert watch.due(pause - 0.1) == frozenset()
        assert watch.due(pause) == {URL}


def test_only_a_healthy_idle_one_of_ours_is_offered_for_tasks() -> None:
    """DISC-09, C-34."""
    for component, usable in (
        (agent(), True),
        (agent("working"), False),
        (agent("starting"), False),
        (agent(is_ours=False), False),
        (agent()._replace(says={"interfaces": ["statusable"]}), False),
    ):
        watch = Watch()
        watch.heard((), [component], 0)
        assert [one.is_usable for one in watch.seen(0)] == [usable], component
    silent = Watch()
    silent.heard((), [agent()], 0)
    silent.heard([URL], [], 1)
    assert [one.is_usable for one in silent.seen(1)] == [False]


def test_one_that_never_answered_is_not_green_and_a_stranger_that_goes_is_gone() -> None:
    watch = Watch()
    watch.heard((), [Component("agent", "new", SILENT, url=URL)], 0)
    assert colours(watch, 0)[0][0] == "yellow"
    watch = Watch()
    watch.heard((), [agent(is_ours=False)], 0)
    assert colours(watch, 0) == [("grey", "not ours", 0)]
    watch.heard([URL], [], STRANGER)
    assert watch.seen(STRANGER) == ()
