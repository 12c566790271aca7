"""Kill the process that moves a task's conversation into a pane, or back, at every change of the file system.

Whatever happens: the task has the conversation, or the pane has it; never do two programs go on in it, and never can
nobody. A normal run tries a few points of each verb, other ones with each commit; ``SWARM_CRASH=full`` tries all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for
from tests.support import tracer
from tests.support.share import FULL, TURN
from tests.tasks.conftest import LONG, PanesLab, end_tasks
from tests.tasks.test_task_crash import FEW, traced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(7200 if FULL else 600),
    pytest.mark.skipif(not tracer.SUPPORTED, reason=str(tracer.why_unsupported())),
]
ID = "one"


def held(lab: PanesLab) -> None:
    """Have a task that is idle after its first turn."""
    lab.held(ID)


def taken(lab: PanesLab) -> None:
    """Have one that is in a pane, with its program at its prompt."""
    held(lab)
    lab.swarm.tasks.take(ID)
    lab.until("dev", "idle", session=ID)


def take(lab: PanesLab) -> None:
    """Move it into a pane."""
    lab.swarm.tasks.take(ID)


def give_back(lab: PanesLab) -> None:
    """Move it back."""
    lab.swarm.tasks.give_back(ID)


def has_one_owner(lab: PanesLab) -> None:
    """The pane has the conversation and the task goes nowhere; or the task has it, and no program is in a pane."""
    state = lab.swarm.tasks.get(ID).state
    assert state in ("idle", "taken")
    if state == "idle":
        wait_for(lambda: lab.in_pane(ID) == [], "no program in a pane", LONG)
    else:
        assert len(lab.in_pane(ID)) <= 1
        lab.swarm.tasks.give_back(ID)
        assert lab.in_pane(ID) == []
    lab.swarm.tasks.continue_(ID, "demo: " + lab.write_down("second"))
    assert (lab.swarm.tasks.wait(ID, LONG).state, lab.ledger()) == ("idle", ["second"])
    assert lab.swarm.tasks.take(ID).state == "taken"
    lab.until("dev", "idle", session=ID)


VERBS: dict[str, tuple[Callable[[PanesLab], None], Callable[[PanesLab], None]]] = {
    "take": (held, take),
    "give-back": (taken, give_back),
}


@pytest.mark.parametrize("verb", VERBS)
def test_no_kill_leaves_two_programs_or_none_in_a_conversation(tmp_path: Path, verb: str) -> None:
    prepare, act = VERBS[verb]

    def tried(name: str, at: int | None) -> tracer.Outcome:
        folder = tmp_path / name
        folder.mkdir()
        lab = PanesLab(folder.resolve())
        try:
            prepare(lab)
            outcome = traced(lab, lambda _lab: act(lab), at)
            has_one_owner(lab)
        finally:
            end_tasks(lab)
            lab.close()
        return outcome

    points = tried("sample", None).points
    count = len(points)
    assert count > 10
    for point in range(1, count + 1) if FULL else sorted({1 + (TURN + n * count // FEW) % count for n in range(FEW)}):
        try:
            tried(str(point), point)
        except AssertionError as error:
            raise AssertionError(f"{verb}, killed before {points[point - 1]}: {error}") from error
