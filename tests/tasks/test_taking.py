"""Take-over: the conversation of a held task goes on in a pane, and back; one program has it at any time."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from swarm import Approval, TaskBusy, TaskEvent, TaskInPane, TaskNotHeld, TaskNotTaken, TaskOver, UsageProblem, WaitOver
from swarm.testing.terminal import Pane, wait_for
from tests.tasks.conftest import LONG, PanesLab

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
ID = "one"


def kinds(lab: PanesLab, *, after: int = 0) -> list[str]:
    return [one.kind for one in lab.swarm.tasks.events(ID, after=after)]


def test_a_task_goes_into_a_pane_and_back(panes: PanesLab) -> None:
    held = panes.held(ID)
    taken = panes.swarm.tasks.take(ID)

    assert taken.pane is not None
    assert (taken.state, taken.shown, taken.pane.address) == ("taken", "working", "dev@one")
    panes.until("dev", "idle", session=ID)
    assert len(panes.in_pane(ID)) == 1

    back = panes.swarm.tasks.give_back(ID)
    assert (back.state, back.pane, panes.in_pane(ID)) == ("idle", None, [])
    assert [one for one in panes.tmux.rows("#{@swarm_agent}") if one == "dev"] == []
    assert kinds(panes, after=held.events) == ["taking", "taken", "returning", "returned"]

    panes.swarm.tasks.continue_(ID, "demo: " + panes.write_down("second"))
    assert (panes.swarm.tasks.wait(ID, LONG).state, panes.ledger()) == ("idle", ["second"])
    assert panes.swarm.tasks.take(ID).state == "taken"  # as often as one likes
    assert panes.swarm.tasks.cancel(ID).state == "cancelled"
    assert panes.in_pane(ID) == []


def test_a_task_without_a_worktree_gets_a_session_in_its_folder(panes: PanesLab) -> None:
    panes.over(panes.demo("say hello", hold=True, task_id=ID))

    taken = panes.swarm.tasks.take(ID)

    assert taken.pane is not None
    (group,) = panes.swarm.status(ID)
    (one,) = group.agents
    assert (taken.pane.address, one.agent.name, one.agent.conversation) == ("demo@one", "demo", taken.conversation)
    assert one.worktree == panes.root / ".swarm/workspaces/session-one/work"
    assert panes.swarm.tasks.give_back(ID).state == "idle"
    assert panes.swarm.tasks.take(ID).state == "taken"  # in the same session
    panes.swarm.cleanup([ID], force=True)
    assert panes.swarm.tasks.get(ID).state == "idle"
    assert (panes.root / ".swarm/workspaces/session-one/work").is_dir()
    assert panes.swarm.tasks.end(ID).state == "completed"


def test_nobody_else_goes_on_in_the_conversation(panes: PanesLab) -> None:
    panes.held(ID)
    tasks = panes.swarm.tasks
    with pytest.raises(TaskNotTaken, match="in no pane"):
        tasks.give_back(ID)
    assert panes.swarm.resume([ID]).started == ()  # it did its task in print mode
    with pytest.raises(TaskBusy, match="task one has its conversation"):
        panes.swarm.restart("dev", ID)

    tasks.take(ID)

    refused: tuple[Callable[[], object], ...] = (
        lambda: tasks.continue_(ID, "more"),
        lambda: tasks.end(ID),
        lambda: tasks.message(ID, "more"),
        lambda: tasks.take(ID),
    )
    for attempt in refused:
        with pytest.raises(TaskInPane, match="in the pane of dev@one"):
            attempt()
    panes.swarm.stop([ID])
    assert panes.swarm.tasks.get(ID).state == "taken"  # its user may bring it back
    panes.swarm.resume([ID])
    panes.until("dev", "idle", session=ID)
    assert panes.swarm.tasks.give_back(ID).state == "idle"
    with pytest.raises(TaskBusy, match="task one has its conversation"):
        panes.swarm.resume([ID])


def test_a_take_waits_for_the_end_of_the_turn(panes: PanesLab) -> None:
    go = panes.file.with_name("go")
    panes.write({"roles/dev.yaml": "name: dev\ninstructions: Do it.\n"})
    script = f"echo begun >>'{panes.file}'; until test -e '{go}'; do sleep 0.05; done"
    panes.swarm.tasks.submit(script, program="shell", hold=True, task_id="script")
    with pytest.raises(UsageProblem, match="shell has no conversation"):
        panes.swarm.tasks.take("script")
    panes.demo("permission Bash", hold=True, task_id=ID, role="dev", worktree=True)
    wait_for(lambda: bool(panes.swarm.approvals()), "its request", LONG)
    with pytest.raises(WaitOver):
        panes.swarm.tasks.take(ID, timeout=0.1)
    assert panes.swarm.tasks.get(ID).state == "working"

    panes.env["SWARM_TASKS_ANSWER_WITHIN"] = "1"
    panes.demo("permission Bash", hold=True, task_id="two", role="dev", worktree=True)

    assert panes.swarm.tasks.take("two", timeout=LONG).state == "taken"
    go.touch()


def test_what_cannot_be_taken_is_refused_and_nothing_is_left(panes: PanesLab) -> None:
    panes.write({"roles/printer.yaml": "name: printer\nprint: true\ninstructions: Do it.\n"})
    panes.over(panes.demo("say x", hold=True, task_id="printer", role="printer"))
    with pytest.raises(UsageProblem, match="its role printer has `print`"):
        panes.swarm.tasks.take("printer")
    panes.demo("permission Bash", hold=False, task_id="loose")
    with pytest.raises((TaskNotHeld, TaskOver)):
        panes.swarm.tasks.take("loose")
    panes.held(ID)
    panes.env["SWARM_TMUX_SOCKET"] = str(panes.root.parent / "no" / "folder")

    with pytest.raises(Exception, match="cannot open"):
        panes.swarm.tasks.take(ID)

    left = panes.swarm.tasks.get(ID)
    assert (left.state, left.pane) == ("idle", None)


def test_a_removed_worktree_cancels_a_taken_task(panes: PanesLab) -> None:
    panes.held(ID)
    panes.swarm.tasks.take(ID)

    panes.swarm.cleanup([ID], force=True)

    assert panes.swarm.tasks.get(ID).state == "cancelled"


def test_a_dead_helper_leaves_the_pane_with_the_conversation(panes: PanesLab) -> None:
    """Its state says that a process moves it; that one is gone, and what is so is concluded."""
    panes.held(ID)
    panes.swarm.tasks.take(ID)
    panes.until("dev", "idle", session=ID)
    file = panes.root / ".swarm/tasks/one/task.json"
    gone = {"pid": 1 << 22, "start": 1}

    for state in ("taking", "returning"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps({**record, "state": state, "pane": {**record["pane"], **gone}}))
        assert panes.swarm.tasks.get(ID).state == "taken"
    os.kill(panes.in_pane(ID)[0], signal.SIGKILL)
    wait_for(lambda: panes.in_pane(ID) == [], "its end", LONG)
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "state": "returning", "pane": {**record["pane"], **gone}}))

    assert panes.swarm.tasks.get(ID).state == "idle"


# --- follow ---------------------------------------------------------------------------------------


def test_a_follower_sees_what_is_said_asked_and_done(panes: PanesLab) -> None:
    panes.env["SWARM_TASKS_ANSWER_WITHIN"] = "1"
    panes.demo("say hello", "permission Bash", "say bye", task_id=ID, hold=True)
    panes.swarm.tasks.wait(ID, LONG)
    panes.swarm.tasks.end(ID)

    news = list(panes.swarm.tasks.follow(ID))

    shown = [getattr(one, "kind", "") + " " + getattr(one, "text", "") for one in news]
    assert "text hello" in shown
    assert "text bye" in shown
    asked = [str(one.standing) for one in news if isinstance(one, Approval)]
    assert asked == ["withdrawn"]
    assert [one.kind for one in news if isinstance(one, TaskEvent)][-1] == "completed"


def test_a_follower_of_a_script_sees_what_it_writes_as_it_comes(panes: PanesLab) -> None:
    go = panes.file.with_name("go")
    panes.swarm.tasks.submit(
        f"echo first; until test -e '{go}'; do sleep 0.05; done; echo last", program="shell", task_id=ID
    )
    news = panes.swarm.tasks.follow(ID)

    assert next(one for one in news if getattr(one, "text", "") == "first")
    go.touch()

    assert "last" in [getattr(one, "text", "") for one in news]


def test_ctrl_c_leaves_the_task_at_work(panes: PanesLab) -> None:
    panes.running(panes.shell(f"echo begun >>'{panes.file}'; echo hello; sleep 1000", task_id=ID))
    argv = [sys.executable, "-P", "-m", "swarm", "task", "attach", ID]
    terminal = Pane(argv, env=panes.env, cwd=panes.root)
    try:
        terminal.see("hello", LONG)
        terminal.send(signal.SIGINT)
        terminal.see("one goes on", LONG)
        terminal.ended(LONG)
    finally:
        terminal.close()

    assert panes.swarm.tasks.get(ID).state == "working"


def test_a_pane_follows_a_task_and_is_no_stray(panes: PanesLab) -> None:
    panes.running(panes.shell(f"echo begun >>'{panes.file}'; echo hello; sleep 1000", task_id=ID))

    opened = panes.swarm.tasks.show(ID)

    wait_for(lambda: "hello" in panes.tmux("capture-pane", "-p", "-t", opened), "its words", LONG)
    assert panes.swarm.tasks.show(ID) == opened
    assert [one.text for one in panes.swarm.doctor() if one.name == "panes" and one.state != "ok"] == []
