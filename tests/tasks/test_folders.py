"""Folders that a task names: only what the user allowed, by no link, and nothing of swarm's or git's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError, TaskBusy, UsageProblem
from tests.support.tree import as_agent, quiet
from tests.tasks.conftest import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.testing.panes import PaneLab
    from tests.tasks.conftest import TaskLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
def allowed(lab: TaskLab, tmp_path: Path) -> Path:
    """Give a folder in which tasks may work."""
    folder = tmp_path.resolve() / "allowed"
    (folder / "inner").mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    lab.env["SWARM_TASKS_WORKDIRS"] = str(folder)
    return folder


@pytest.mark.parametrize("boxed", [True, False])
def test_a_task_works_in_a_folder_that_the_user_allows(lab: TaskLab, allowed: Path, boxed: bool, boxes: None) -> None:
    task = lab.over(lab.shell("pwd; echo new > made", workdir=str(allowed / "inner"), sandbox=boxed))

    assert task.output.splitlines() == [str(allowed / "inner")]
    assert (allowed / "inner/made").read_text() == "new\n"
    assert task.workdir == str(allowed / "inner")
    second = lab.over(lab.shell("cat made", session_id=task.session_id))
    assert (second.output, second.workdir) == ("new\n", task.workdir)
    with pytest.raises(UsageProblem, match="cannot go on in"):
        lab.shell("true", session_id=task.session_id, workdir=str(allowed))


def test_a_folder_of_the_users_is_never_removed(lab: TaskLab, allowed: Path) -> None:
    task = lab.over(lab.shell("echo mine > mine", workdir=str(allowed)))
    lab.env["SWARM_TASKS_KEEP"] = "1"
    lab.over(lab.shell("true"))

    assert task.id not in {one.id for one in lab.swarm.tasks.history().tasks}
    assert not (lab.root / ".swarm/workspaces" / task.session_id).exists()
    assert (allowed / "mine").read_text() == "mine\n"


def test_exec_14_one_task_at_a_time_works_in_a_folder(lab: TaskLab, allowed: Path) -> None:
    task = lab.shell(f"echo begun >>'{lab.file}'; sleep 1000", workdir=str(allowed))
    lab.running(task)

    for folder in (allowed, allowed / "inner"):
        with pytest.raises(TaskBusy, match="is in use"):
            lab.shell("true", workdir=str(folder))
    lab.swarm.tasks.cancel(task.id)
    assert lab.over(lab.shell("true", workdir=str(allowed / "inner"))).state == "completed"


def wrong(lab: TaskLab, allowed: Path) -> Iterator[tuple[str, str]]:
    """Give folders that are refused, each with words of the reason."""
    (allowed / "link").symlink_to(allowed / "inner")
    (allowed / "out").symlink_to("/etc")
    (allowed / "file").write_text("")
    (allowed / "open").mkdir()
    (allowed / "open").chmod(0o777)
    yield str(allowed / "link"), "leads by a link"
    yield str(allowed / "out"), "leads by a link"
    yield f"{allowed}/inner/..", "or by .."
    yield f"{allowed}/../allowed/inner", "or by .."
    yield str(allowed / "none"), "is no folder"
    yield str(allowed / "file"), "is no folder"
    yield str(allowed / "open"), "others can write"
    (allowed.parent / "elsewhere").mkdir()
    yield str(allowed.parent / "elsewhere"), "in no folder in which tasks may work"
    yield f"{allowed}-other", "in no folder in which tasks may work"
    yield "inner", "no absolute path"
    yield "a\nb", "printable line"
    yield str(lab.root), "would show what swarm and git keep"
    yield str(lab.root / ".git"), "would show what swarm and git keep"
    yield str(lab.root / ".swarm"), "would show what swarm and git keep"


def test_no_other_folder_is_taken(lab: TaskLab, allowed: Path) -> None:
    found = {}
    for path, words in wrong(lab, allowed):
        with pytest.raises(UsageProblem) as caught:
            lab.shell("true", workdir=path)
        if words not in caught.value.message:
            found[path] = caught.value.message

    assert found == {}
    assert lab.swarm.tasks.list(finished=True) == ()


def test_what_is_allowed_does_not_help_where_it_is_swarms_own(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_WORKDIRS"] = str(lab.root.parent)

    with pytest.raises(UsageProblem, match="would show what swarm and git keep"):
        lab.shell("true", workdir=str(lab.root / ".swarm"))
    with pytest.raises(UsageProblem, match="would act outside of its box"):
        lab.shell("true", workdir=lab.env["HOME"])


def test_a_worktree_is_the_only_folder_of_its_task(lab: TaskLab, allowed: Path) -> None:
    with pytest.raises(UsageProblem, match="works in no other folder"):
        lab.shell("true", workdir=str(allowed), worktree=True, role="developer")


# --- the folder of sessions ---------------------------------------------------------------------


@pytest.mark.parametrize("boxed", [True, False])
def test_sessions_lie_where_the_user_says(lab: TaskLab, tmp_path: Path, boxed: bool, boxes: None) -> None:
    """API-26, C-30: made fresh, used again by who names it, removed with its last task; swarm's mark is in it."""
    top = tmp_path.resolve() / "sessions"
    task = lab.over(lab.shell("pwd; echo 1 > made", session_dir=str(top), sandbox=boxed, hold=True))

    assert task.output.splitlines() == [str(top / task.session_id / "work")]
    assert (top / task.session_id / "session.json").exists()
    lab.swarm.tasks.end(task.id)
    again = lab.over(lab.shell("cat made", session_dir=str(top), session_id=task.session_id))
    assert again.output == "1\n"
    assert f"{top.stat().st_mode:o}"[-3:] == "700"
    lab.env["SWARM_TASKS_KEEP"] = "1"
    lab.over(lab.shell("true"))
    assert list(top.iterdir()) == []


def test_a_folder_without_swarms_mark_is_left_alone(lab: TaskLab, tmp_path: Path) -> None:
    top = tmp_path.resolve() / "sessions"
    (top / "mine").mkdir(parents=True, mode=0o700)
    top.chmod(0o700)
    (top / "mine/file").write_text("mine")

    task = lab.over(lab.shell("true", session_dir=str(top), session_id="mine"))

    assert task.failure is not None
    assert "swarm did not make it" in task.failure.message
    assert (top / "mine/file").read_text() == "mine"
    assert os.listdir(top / "mine") == ["file"]


def test_a_link_in_the_place_of_a_session_is_not_followed(lab: TaskLab, tmp_path: Path) -> None:
    top, other = tmp_path.resolve() / "sessions", tmp_path.resolve() / "other"
    for folder in (top, other):
        folder.mkdir(mode=0o700)
    (top / "linked").symlink_to(other)

    task = lab.over(lab.shell("true", session_dir=str(top), session_id="linked"))

    assert task.state == "failed"
    assert list(other.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [("sessions", "no absolute path"), ("{root}/.swarm/x", "swarm and git keep"), ("{link}", "by a link")],
)
def test_no_other_folder_of_sessions_is_taken(lab: TaskLab, tmp_path: Path, path: str, words: str) -> None:
    link = tmp_path.resolve() / "link"
    link.symlink_to("/etc")

    with pytest.raises(UsageProblem, match=words):
        lab.shell("true", session_dir=path.format(root=lab.root, link=link))

    assert lab.swarm.tasks.list(finished=True) == ()


def test_an_agent_can_choose_neither_folder_nor_box(panes: PaneLab, tmp_path: Path) -> None:
    quiet(panes)
    panes.swarm.start("fx", ["developer"], command="sleep 1000")
    agent = as_agent(panes, "developer", "fx")
    for how in ({"session_dir": str(tmp_path.resolve())}, {"sandbox": False}):
        with pytest.raises(SwarmError) as caught:
            agent.tasks.submit("true", program="shell", **how)
        assert caught.value.code == "NOT_FOR_AGENTS", caught.value
    assert panes.swarm.tasks() == ()
    done = agent.tasks.submit("true", program="shell")
    assert agent.tasks.wait(done.id, LONG).state == "completed"
