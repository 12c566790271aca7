"""A task in a worktree is an ordinary session of one agent: its work can be seen, merged, saved and brought back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.lab import file_digests
from swarm.testing.terminal import wait_for
from tests.tasks.conftest import LONG

if TYPE_CHECKING:
    from swarm import AgentTask
    from tests.tasks.conftest import TaskLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
HOW = {"worktree": True, "role": "developer"}


def test_it_is_a_session_of_one_agent_without_a_pane(lab: TaskLab) -> None:
    task = lab.over(lab.demo("edit new.txt hello", "say made it", hold=True, **HOW))
    assert (task.state, task.output, task.failure) == ("idle", "made it", None)

    (session,) = lab.swarm.status()
    assert [(one.agent.name, one.status.state, one.ahead) for one in session.agents] == [("developer", "done", 1)]
    assert [one.path for one in lab.swarm.diff("developer", task.session_id).files] == ["new.txt"]
    assert lab.swarm.why("developer", task.session_id).pane == ""
    assert "made it" in " ".join(one.text for one in lab.swarm.transcript("developer", task.session_id))

    lab.swarm.tasks.continue_(task.id, "demo: edit more.txt again")
    task = lab.over(task)
    assert task.runs[1].resumed
    assert lab.swarm.tasks.end(task.id).state == "completed"
    lab.swarm.merge(task.session_id, into="main")
    assert lab.git("show", "main:more.txt") == "again"


def at_work(lab: TaskLab, **options: object) -> AgentTask:
    """Have a task with uncommitted and untracked work that goes on."""
    script = f"echo changed > README; echo new > untracked; echo begun >>'{lab.file}'; sleep 1000"
    task = lab.shell(script, **HOW, **options)
    wait_for(lambda: bool(lab.ledger()), "its work", LONG)
    return task


@pytest.mark.parametrize("how", ["cancel", "timeout", "stop", "failure"])
def test_no_end_loses_its_work(lab: TaskLab, how: str) -> None:
    """V9: it stays in the worktree; a cleanup saves it, and a restore brings it back byte for byte."""
    if how == "failure":
        task = lab.shell("echo changed > README; echo new > untracked; exit 3", **HOW)
    else:
        task = at_work(lab, timeout=3 if how == "timeout" else None)
    if how == "cancel":
        lab.swarm.tasks.cancel(task.id)
    elif how == "stop":
        lab.swarm.stop([task.session_id])
    done = lab.over(task)
    assert done.state == ("cancelled" if how in {"cancel", "stop"} else "failed")
    assert lab.started() == []
    tree = lab.tree("developer", task.session_id)
    before = file_digests(tree, skip={".git"})
    assert (tree / "untracked").read_text() == "new\n"

    lab.swarm.cleanup([task.session_id], force=True)
    assert not tree.exists()
    lab.swarm.restore(task.session_id)

    assert file_digests(tree, skip={".git"}) == before


def test_whoever_removes_its_session_cancels_it(lab: TaskLab) -> None:
    task = at_work(lab)

    lab.swarm.cleanup([task.session_id], force=True)

    assert lab.over(task).state == "cancelled"
    assert lab.started() == []


def test_one_that_cannot_be_made_fails_and_leaves_nothing(lab: TaskLab) -> None:
    lab.git("branch", "swarm")
    before = lab.fingerprint()

    done = lab.over(lab.shell("true", **HOW))

    assert done.failure is not None
    assert (done.state, done.failure.type) == ("failed", "not_started")
    assert "swarm" in done.failure.message
    assert lab.fingerprint()["worktrees"] == before["worktrees"]
    assert lab.swarm.sessions() == ()


def test_its_model_is_that_of_the_task(lab: TaskLab) -> None:
    done = lab.over(lab.demo("say x", model="opus", **HOW))

    (agent,) = lab.swarm.sessions.get(done.session_id).agents
    assert agent.overrides == (("model", "opus"),)
    assert done.state == "completed"
