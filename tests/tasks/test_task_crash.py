"""Kill the process that acts on tasks at every change of the file system; every third time again in the recovery.

Whatever happens: an accepted task is done, and once, as a ledger shows that its program writes; no running program is
lost or started twice; an unfinished task is never removed.  A normal run tries a few points of each verb, other ones
with each commit; ``SWARM_CRASH=full`` tries all.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from swarm import TaskNotFound, TaskOver
from swarm.testing.terminal import wait_for
from tests.support import tracer
from tests.support.share import FULL, TURN
from tests.support.tracer import Action
from tests.tasks.conftest import LONG, TaskLab

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(7200 if FULL else 400),
    pytest.mark.skipif(not tracer.SUPPORTED, reason=str(tracer.why_unsupported())),
]
#: How many points are tried in a normal run.
FEW = 5
ID = "one"


def submit(lab: TaskLab) -> None:
    """Accept a task and start it, and see its end."""
    lab.shell(f"echo done >>'{lab.file}'", task_id=ID)
    lab.swarm.tasks.wait(ID, LONG)


def again(lab: TaskLab) -> None:
    """Give the next prompt to a held task."""
    lab.swarm.tasks.continue_(ID, "demo: " + lab.write_down("second"))
    lab.swarm.tasks.wait(ID, LONG)


def stop(lab: TaskLab) -> None:
    """Cancel what runs."""
    lab.swarm.tasks.cancel(ID)


def prune(lab: TaskLab) -> None:
    """End a held task, with which the others go."""
    lab.env["SWARM_TASKS_KEEP"] = "1"
    lab.swarm.tasks.end(ID)


def nothing(lab: TaskLab) -> None:
    """Begin with nothing."""


def held(lab: TaskLab) -> None:
    """Have a task that is held after its first turn."""
    lab.over(lab.demo(lab.write_down("first"), task_id=ID, hold=True))


def at_work(lab: TaskLab) -> None:
    """Have one at work."""
    lab.running(lab.shell(f"echo begun >>'{lab.file}'; sleep 1000", task_id=ID))


def full(lab: TaskLab) -> None:
    """Have two finished tasks, and one that is held."""
    for number in range(2):
        lab.over(lab.shell("true", task_id=f"old-{number}"))
    held(lab)


def was_done(lab: TaskLab) -> None:
    """A submit that was not accepted may be repeated; in both cases there is one effect."""
    with contextlib.suppress(TaskNotFound):
        assert lab.swarm.tasks.wait(ID, LONG).state == "completed"
    submit(lab)
    assert lab.swarm.tasks.get(ID).state == "completed"
    assert lab.ledger() == ["done"]


def went_on(lab: TaskLab) -> None:
    """The second turn was not accepted, or it is done once."""
    found = lab.swarm.tasks.wait(ID, LONG)
    if len(found.prompts) == 1:
        again(lab)
        found = lab.swarm.tasks.get(ID)
    assert (found.state, lab.ledger()) == ("idle", ["first", "second"])


def was_stopped(lab: TaskLab) -> None:
    """It works still, and can be cancelled; or that is done."""
    found = lab.swarm.tasks.get(ID)
    assert len(found.runs) == 1
    if found.state != "cancelled":
        found = lab.swarm.tasks.cancel(ID)
    assert (found.state, lab.ledger(), lab.started()) == ("cancelled", ["begun"], [])


def was_pruned(lab: TaskLab) -> None:
    """The unfinished one is there; of the others whole folders are there or gone."""
    lab.env["SWARM_TASKS_KEEP"] = "1"
    if lab.swarm.tasks.get(ID).state == "idle":
        lab.swarm.tasks.end(ID)
    assert lab.swarm.tasks.get(ID).state == "completed"
    assert all(one.state == "completed" for one in lab.swarm.tasks.list(finished=True))
    lab.over(lab.shell("true", task_id="new"))
    tasks = lab.root / ".swarm/tasks"

    def tidy() -> bool:
        shown = [one.id for one in lab.swarm.tasks.history().tasks]
        return (shown, names(tasks)) == (["new"], {".open", "new"})

    wait_for(tidy, "the others gone", LONG)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith("lock")}


def message(lab: TaskLab) -> None:
    """Send a held task a message, and see what came of it."""
    lab.swarm.tasks.message(ID, "demo: " + lab.write_down("second"), message_id="mine")
    lab.swarm.tasks.wait(ID, LONG)


def was_told(lab: TaskLab) -> None:
    """A message that was not accepted may be repeated; in both cases it is heard once."""
    message(lab)
    assert [(str(one.state), one.turn) for one in lab.swarm.tasks.messages(ID)] == [("answered", 2)]
    assert (lab.swarm.tasks.get(ID).state, lab.ledger()) == ("idle", ["first", "second"])


VERBS: dict[str, tuple[Callable[[TaskLab], None], ...]] = {
    "submit": (nothing, submit, was_done),
    "continue": (held, again, went_on),
    "message": (held, message, was_told),
    "cancel": (at_work, stop, was_stopped),
    "prune": (full, prune, was_pruned),
}


def traced(lab: TaskLab, act: Callable[[TaskLab], None], at: int | None = None) -> tracer.Outcome:
    """Run something in a process that is killed before its n-th change; its supervisors go on."""

    def target() -> int:
        act(lab)
        return 0

    kill = Action.KILL_ROOT if at else None
    return tracer.trace(target, at=at, action=kill, scope=lambda point: point.is_root, timeout=LONG)


def waits(lab: TaskLab) -> None:
    """What a process does that comes next: it looks."""
    with contextlib.suppress(TaskNotFound):
        lab.swarm.tasks.get(ID)


def stage(tmp_path: Path, name: str, prepare: Callable[[TaskLab], None]) -> TaskLab:
    folder = tmp_path / name
    folder.mkdir()
    lab = TaskLab(folder.resolve())
    prepare(lab)
    return lab


@pytest.mark.parametrize("verb", VERBS)
def test_no_kill_loses_a_task_or_does_it_twice(tmp_path: Path, verb: str) -> None:
    prepare, act, check = VERBS[verb]
    sample = stage(tmp_path, "sample", prepare)
    # A cancel waits for the end of what it killed, which is not its child here: the count is that of a run alone.
    outcome = traced(sample, act)
    assert outcome.exit_code == 0
    check(sample)
    count = len(outcome.points)
    assert count > 10
    points = range(1, count + 1) if FULL else sorted({1 + (TURN + n * count // FEW) % count for n in range(FEW)})
    for number, point in enumerate(points):
        lab = stage(tmp_path, f"{point}", prepare)
        traced(lab, act, point)
        if number % 3 == 2:
            traced(lab, waits, 1 + (TURN + point) % 7)
        try:
            check(lab)
        except AssertionError as error:
            raise AssertionError(f"{verb}, killed before {outcome.points[point - 1]}: {error}") from error
        finally:
            for task in lab.swarm.tasks():
                with contextlib.suppress(TaskOver):
                    lab.swarm.tasks.cancel(task.id)
