"""Tasks in boxes: what they see, what they leave, and what becomes of them when somebody is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import SandboxUnavailable, TaskState, UsageProblem
from swarm.kit.errors import SwarmError
from swarm.machine import processes
from swarm.sandbox import wish
from swarm.testing.terminal import wait_for
from tests.tasks.conftest import LONG

if TYPE_CHECKING:
    from swarm import AgentTask
    from tests.tasks.conftest import TaskLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
IN_TREE = {"worktree": True, "role": "developer", "sandbox": True}
#: What a program in a box says of itself and of what it sees.
LOOKS = """
id -u; echo processes $(ls /proc | grep -c '^[0-9]'); cat /etc/passwd; ls -A ~; ls -A ..; env | grep -c SECRET
git -C .. log 2>&1 | head -1; ls '{root}'; touch /usr/planted ~/../planted ../planted '{root}/planted'; echo kept > made
for fd in /proc/self/fd/*; do readlink $fd; done
"""


def folder_of(lab: TaskLab, task: AgentTask) -> Path:
    return lab.root / ".swarm/workspaces" / task.session_id


def said(lab: TaskLab, task: AgentTask) -> str:
    """Return all that the last run wrote."""
    last = lab.swarm.tasks.output(task.id)[-1]
    return (last.stdout + last.stderr).decode()


def of_task(task: AgentTask) -> list[str]:
    """Return the command lines of living processes that belong to a task: those of bubblewrap, too."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if task.id in words and int(pid) != os.getpid():
            found.append(words)
    return found


def is_gone(task: AgentTask) -> None:
    wait_for(lambda: not of_task(task), "the end of all processes of the task", LONG)


# --- what it sees -------------------------------------------------------------------------------


def test_box_08_a_task_in_a_box_sees_its_folder_and_nothing_else(lab: TaskLab, boxes: None) -> None:
    lab.env["MY_SECRET"] = "longer than eight"
    task = lab.over(lab.shell(LOOKS.format(root=lab.root), sandbox=True))

    words = said(lab, task)
    lines = words.splitlines()
    assert lines[0] == "1000"
    assert int(lines[1].removeprefix("processes ")) < 12
    assert "/etc/passwd: No such file" in words
    assert "0" in lines  # variables with a secret
    assert "README" not in words
    assert "first" not in words  # the history of the repository around it
    assert not any((lab.root / name).exists() for name in ("planted", ".swarm/planted", ".swarm/workspaces/planted"))
    assert (folder_of(lab, task) / "work/made").read_text() == "kept\n"
    assert [line for line in lines if line.startswith("/memfd")] == []
    assert (task.box.by if task.box else "") == "bubblewrap"
    record = json.loads((lab.root / ".swarm/tasks" / task.id / "task.json").read_bytes())
    assert (record["box"]["network"], record["box"]["read_write"]) == ("model", [])
    is_gone(task)


def test_what_it_reads_it_cannot_write(lab: TaskLab, boxes: None) -> None:
    """A descriptor of a file can be opened anew, and then to write; so its standard input is a copy."""
    task = lab.swarm.tasks.submit(
        "the prompt", command=["sh", "-c", "cat; echo planted >/proc/self/fd/0; echo"], sandbox=True
    )
    task = lab.over(task)

    run = lab.root / ".swarm/tasks" / task.id / "runs" / task.runs[0].operation
    assert (run / "prompt.md").read_text() == "the prompt"
    assert task.output.startswith("the prompt")


def test_a_held_task_goes_on_in_its_box_and_so_does_its_session(lab: TaskLab, boxes: None) -> None:
    first = lab.over(lab.demo("say one", sandbox=True, hold=True))
    lab.env["SWARM_SANDBOX_NETWORK"] = "none"  # what was decided stays
    lab.swarm.tasks.continue_(first.id, "demo: say two")
    first = lab.over(first)
    assert (first.output, first.runs[1].resumed) == ("two", True)
    lab.swarm.tasks.end(first.id)

    second = lab.over(lab.demo("say three", session_id=first.session_id))

    assert second.box == first.box
    assert second.box is not None
    assert second.box.network == "model"
    assert (second.output, second.runs[0].resumed) == ("three", True)


@pytest.mark.parametrize("begun", [True, False])
def test_a_session_goes_on_as_it_was_begun(lab: TaskLab, boxes: None, begun: bool) -> None:
    first = lab.over(lab.shell("true", sandbox=begun))

    with pytest.raises(UsageProblem, match="and goes on so"):
        lab.shell("true", session_id=first.session_id, sandbox=not begun)

    assert len(lab.swarm.tasks.list(finished=True)) == 1


def test_a_retry_is_in_the_same_box(lab: TaskLab, boxes: None) -> None:
    orders = ("append ledger one", "once error retryable no network", "append ledger two", "say done")
    task = lab.over(lab.demo(*orders, sandbox=True))

    assert (task.state, [one.resumed for one in task.runs]) == ("completed", [False, True])
    assert (folder_of(lab, task) / "work/ledger").read_text().split() == ["one", "two"]


def test_commits_of_a_task_are_taken_in_when_it_is_over(lab: TaskLab, boxes: None) -> None:
    task = lab.over(lab.demo("edit new.txt hello", "say made it", hold=True, **IN_TREE))

    branch = lab.git("for-each-ref", "--format=%(refname:short)", "refs/heads/swarm")
    assert lab.git("show", f"{branch}:new.txt") == "hello"  # by git alone, at once
    (session,) = lab.swarm.status()
    assert [one.agent.is_boxed for one in session.agents] == [True]
    assert "made it" in " ".join(one.text for one in lab.swarm.transcript("developer", task.session_id))

    lab.swarm.tasks.continue_(task.id, "demo: edit more.txt again")
    task = lab.over(task)
    assert task.runs[1].resumed
    assert lab.swarm.tasks.end(task.id).state == "completed"
    lab.swarm.merge(task.session_id, into="main")
    assert lab.git("show", "main:more.txt") == "again"
    is_gone(task)


def test_commits_are_taken_in_before_somebody_looks(lab: TaskLab, boxes: None) -> None:
    script = "echo one > one; git add one; git commit -qm one; touch done; sleep 1000"
    task = lab.shell(script, **IN_TREE)
    tree = lab.root / ".worktrees" / f"developer-{task.session_id}"
    wait_for((tree / "done").exists, "its commit", LONG)

    (session,) = lab.swarm.status()

    assert [one.ahead for one in session.agents] == [1]
    done = lab.swarm.tasks.cancel(task.id)
    assert done.state == "cancelled"
    is_gone(task)


def test_commits_that_cannot_be_taken_in_stay_in_the_box_and_the_task_says_so(lab: TaskLab, boxes: None) -> None:
    nested = (
        "git init -q inner; cd inner; git commit -q --allow-empty -m x; cd ..; git add inner; git commit -qm nested"
    )
    task = lab.over(lab.shell(nested, **IN_TREE))

    last = lab.swarm.tasks.events(task.id)[-1]
    assert task.state == "completed"
    assert last.detail.startswith("its commits stay in its box: ")


# --- where there is no box ----------------------------------------------------------------------


def without_bubblewrap(lab: TaskLab, tmp_path: Path) -> None:
    """Take bubblewrap out of the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "tmux", "sh", "sleep", "env", "cat", "id", "python3"):
        (folder / name).symlink_to(shutil.which(name) or "")
    lab.env["PATH"] = str(folder)


@pytest.mark.parametrize("how", [{}, {"worktree": True, "role": "developer"}])
def test_c_39_without_a_box_nothing_is_accepted_unless_the_user_said_so(
    lab: TaskLab, tmp_path: Path, how: dict[str, object]
) -> None:
    lab.over(lab.shell("true"))
    without_bubblewrap(lab, tmp_path)
    before = sorted(str(one) for one in (lab.root / ".swarm").rglob("*"))

    with pytest.raises(SandboxUnavailable, match="bwrap is not installed"):
        lab.shell("true", sandbox=True, **how)

    assert sorted(str(one) for one in (lab.root / ".swarm").rglob("*")) == before
    assert lab.git("branch", "--list", "swarm/*") == ""
    lab.env["SWARM_SANDBOX_ALLOW_UNSANDBOXED"] = "true"
    task = lab.over(lab.shell("id -u", sandbox=True, **how))
    assert task.state == "completed"
    assert task.box is not None
    assert task.box.by == "noop (bwrap is not installed)"


def test_a_box_that_is_not_there_any_more_fails_the_task(lab: TaskLab, boxes: None, tmp_path: Path) -> None:
    task = lab.over(lab.shell("true", sandbox=True, hold=True))
    without_bubblewrap(lab, tmp_path)

    lab.swarm.tasks.continue_(task.id, "echo begun")

    task = lab.over(task)
    assert task.failure is not None
    assert task.failure.type == "sandbox_error"
    assert task.failure.message.startswith("sandbox setup failed: cannot make a box: bwrap is not installed")
    assert "begun" not in said(lab, task)


@pytest.mark.parametrize("how", [{"sandbox": True}, IN_TREE], ids=["folder", "worktree"])
def test_box_05_a_box_that_cannot_be_made_is_no_end_of_its_program(
    lab: TaskLab, boxes: None, tmp_path: Path, how: dict[str, object]
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    lab.env["SWARM_SANDBOX_READ_ONLY_PATHS"] = str(shown)
    task = lab.over(lab.shell("true", hold=True, **how))
    assert task.state == "idle", task.failure
    shown.rmdir()

    lab.swarm.tasks.continue_(task.id, "echo begun")

    task = lab.over(task)
    assert task.failure is not None
    assert (task.failure.type, task.failure.retryable) == ("sandbox_error", False)
    assert task.failure.message.startswith("sandbox setup failed: bwrap: ")
    assert "begun" not in said(lab, task)


def test_an_end_of_a_program_is_never_taken_for_that_of_its_box(lab: TaskLab, boxes: None) -> None:
    task = lab.over(lab.shell("echo 'bwrap: no' >&2; exit 1", sandbox=True))

    assert task.failure is not None
    assert (task.failure.type, task.exit_code) == ("program_error", 1)


def test_what_takes_a_box_away_is_not_for_the_repository(lab: TaskLab, boxes: None) -> None:
    lab.write({".swarm/config.yaml": "tasks:\n  workdirs: [/srv]\n"})

    try:
        with pytest.raises(SwarmError, match="is not for a repository to say"):
            _ = lab.swarm
    finally:
        (lab.root / ".swarm/config.yaml").unlink()


def test_the_setting_and_the_role_ask_for_a_box(lab: TaskLab, boxes: None) -> None:
    lab.write({".swarm/roles/careful.yaml": "name: careful\ninstructions: go\nsandbox: true\n"})
    by_role = lab.shell("true", role="careful")
    lab.env["SWARM_SANDBOX_ENABLED"] = "true"
    by_setting = lab.shell("true")
    off = lab.shell("true", sandbox=False)

    assert [lab.over(one).is_boxed for one in (by_role, by_setting, off)] == [True, True, False]


def test_the_machine_is_asked_once_for_a_task(lab: TaskLab, boxes: None) -> None:
    wish._asked.cache_clear()
    lab.over(lab.shell("true", sandbox=True))

    assert wish._asked.cache_info().misses == 1


def test_a_box_of_a_folder_is_not_left_for_a_pane(lab: TaskLab, boxes: None) -> None:
    task = lab.over(lab.demo("say one", sandbox=True, hold=True))

    with pytest.raises(UsageProblem, match="works in a box of its own"):
        lab.swarm.tasks.take(task.id)

    assert lab.swarm.tasks.get(task.id).state == "idle"


# --- ends ---------------------------------------------------------------------------------------

#: Ignores signals, forks twice and has children; the number makes it known outside.
STUBBORN = """
trap '' TERM INT HUP
for n in 1 2 3 4 5; do (setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done # {id}' &) ; done
touch begun; while :; do sleep 1; done
"""


@pytest.mark.parametrize("how", [{"sandbox": True}, IN_TREE], ids=["folder", "worktree"])
@pytest.mark.parametrize("end", ["cancel", "timeout", "kill"])
def test_nothing_of_a_task_in_a_box_lives_on(lab: TaskLab, boxes: None, end: str, how: dict[str, object]) -> None:
    timeout = 3.0 if end == "timeout" else None
    task = lab.shell(STUBBORN.format(id="stubborn"), task_id="stubborn", timeout=timeout, **how)
    tree = folder_of(lab, task) / "work"
    if "worktree" in how:
        tree = lab.root / ".worktrees" / f"developer-{task.session_id}"
    wait_for((tree / "begun").exists, "its program", LONG)
    if end != "timeout":
        wait_for(lambda: len(of_task(task)) > 6, "its children", LONG)

    if end == "cancel":
        assert lab.swarm.tasks.cancel(task.id).state == "cancelled"
    if end == "kill":
        run = lab.swarm.tasks.get(task.id).run
        assert run is not None
        os.kill(run.supervisor, signal.SIGKILL)
    task = lab.over(task)

    expected = {"cancel": ("cancelled", None), "timeout": ("failed", "timeout"), "kill": ("failed", "interrupted")}
    assert (task.state, task.failure and task.failure.type) == expected[end]
    is_gone(task)


def test_a_supervisor_that_is_killed_loses_no_task_in_a_box(lab: TaskLab, boxes: None) -> None:
    """The conversation is in the private home: it is taken up in the same box, and what was done is not done twice."""
    orders = ("append ledger one", "once sleep 1000", "append ledger two", "say done")
    task = lab.demo(*orders, sandbox=True, task_id="taken-up")
    work = folder_of(lab, task) / "work"
    wait_for((work / "ledger").exists, "its first step", LONG)
    run = lab.swarm.tasks.get(task.id).run
    assert run is not None

    os.kill(run.supervisor, signal.SIGKILL)
    task = lab.over(task)

    assert (task.state, task.output) == ("completed", "done")
    assert (work / "ledger").read_text().split() == ["one", "two"]
    assert [(one.cause, one.resumed) for one in task.runs] == [("lost", False), ("exited", True)]
    is_gone(task)


HOLDS = """
import socket, time
held = socket.create_connection(("127.0.0.1", 3128))
open("begun", "w").close()
time.sleep(1000)
"""


def test_the_proxy_of_a_box_ends_with_a_killed_supervisor(lab: TaskLab, boxes: None) -> None:
    """It has the credentials of the user, and somebody is connected."""
    task = lab.shell(f"exec python3 -c '{HOLDS}'", sandbox=True)
    wait_for((folder_of(lab, task) / "work/begun").exists, "its connection", LONG)
    run = lab.swarm.tasks.get(task.id).run
    assert run is not None

    def proxies() -> list[int]:
        found = [one for one in processes.below(run.supervisor) if b"network.serve" in command_of(one.pid)]
        return [one.pid for one in found]

    wait_for(lambda: bool(proxies()), "the proxy", LONG)
    (proxy,) = proxies()
    os.kill(run.supervisor, signal.SIGKILL)

    wait_for(lambda: b"network.serve" not in command_of(proxy), "the end of the proxy", LONG)
    assert lab.over(task).state == "failed"


def command_of(pid: int) -> bytes:
    return processes.read(f"/proc/{pid}/cmdline")


def test_commits_of_a_task_whose_supervisor_was_killed_are_not_lost(lab: TaskLab, boxes: None) -> None:
    script = "echo one > one; git add one; git commit -qm one; touch done; sleep 1000"
    task = lab.shell(script, task_id="killed", **IN_TREE)
    wait_for((lab.root / ".worktrees/developer-killed/done").exists, "its commit", LONG)
    run = lab.swarm.tasks.get(task.id).run
    assert run is not None

    os.kill(run.supervisor, signal.SIGKILL)

    task = lab.over(task)
    assert (task.state, task.failure and task.failure.type) == ("failed", "interrupted")
    branch = lab.git("for-each-ref", "--format=%(refname:short)", "refs/heads/swarm")
    assert lab.git("show", f"{branch}:one") == "one"
    is_gone(task)


def test_a_program_that_writes_more_than_its_disk_is_stopped(lab: TaskLab, boxes: None) -> None:
    """Also by what it writes as its output, which is a file of swarm's."""
    lab.env["SWARM_SANDBOX_DISK"] = "20MiB"
    writes = "for n in $(seq 400); do head -c 4000000 /dev/zero; sleep 0.2; done"
    task = lab.over(lab.shell(writes, sandbox=True))

    assert task.state is TaskState.FAILED
    assert task.failure is not None
    assert task.failure.type == "budget"
    is_gone(task)
