"""Served agents work in boxes by default (C-43), and no file of a repository takes that away."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest

from swarm.sandbox.check import check
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
#: Says who it is and what it sees, then what it was asked, and works until the file `go` is in its folder.
LOOKS = (
    "sh -c 'id -u; ls /etc/passwd; env | grep -c TOKEN; asked=$(cat); touch begun; "
    'case $asked in *wait*) until test -e go; do sleep 0.02; done;; esac; echo "did: $asked"\''
)


@pytest.fixture
def boxed(served: Served) -> Served:
    """Give an agent that is served as it is by default."""
    found = check(os.environ)
    if not found.available:
        (pytest.fail if os.environ.get("SWARM_REQUIRE_BOX") else pytest.skip)(found.cause)
    served.boxed = True
    served.command = LOOKS
    return served


def work(served: Served, task: dict[str, Any]) -> Path:
    return served.root / "workspaces" / str(task["session_id"]) / "work"


def test_c_43_a_served_agent_works_in_a_box(boxed: Served) -> None:
    (boxed.root / "credentials").mkdir(parents=True, mode=0o700)
    (boxed.root / "credentials/github-token").write_text("a-token-of-github")
    (boxed.root / "credentials/github-token").chmod(0o600)
    boxed.start()

    assert boxed.status()["config"]["sandbox"] == "bubblewrap"
    done = boxed.until(boxed.submit("hello"), "completed")
    assert done["output"].split() == ["1000", "0", "did:", "hello"]
    (task,) = boxed.lab.swarm.tasks.list(finished=True)
    assert task.is_boxed
    assert not any("without a box" in one["message"] for one in boxed.status()["log"])


def test_a_server_that_is_killed_leaves_its_boxed_task_at_work(boxed: Served) -> None:
    boxed.start()
    task_id = boxed.submit("wait", hold=True)
    task = boxed.ask("GET", f"/task/{task_id}")[1]
    wait_for((work(boxed, task) / "begun").exists, "the program", 60)
    before = boxed.lab.swarm.tasks.get(task_id)

    boxed.end(signal.SIGKILL)
    boxed.start()

    after = boxed.lab.swarm.tasks.get(task_id)
    assert [(one.operation, one.supervisor) for one in after.runs] == [
        (one.operation, one.supervisor) for one in before.runs
    ]
    (work(boxed, task) / "go").touch()
    assert boxed.until(task_id, "idle")["output"].endswith("did: wait\n")
    assert boxed.ask("POST", f"/task/{task_id}/continue", {"prompt": "more"})[0] == 200
    wait_for(lambda: len(boxed.lab.swarm.tasks.get(task_id).runs) == 2, "its second turn", 60)
    assert boxed.until(task_id, "idle")["output"].endswith("did: more\n")
    assert boxed.ask("POST", f"/task/{task_id}/end")[1]["state"] == "completed"


def test_a_cancel_ends_all_of_a_box(boxed: Served) -> None:
    boxed.start()
    task_id = boxed.submit("wait")
    task = boxed.ask("GET", f"/task/{task_id}")[1]
    wait_for((work(boxed, task) / "begun").exists, "the program", 60)

    assert boxed.ask("POST", f"/task/{task_id}/cancel")[1]["state"] == "cancelled"

    def is_gone() -> bool:
        lines = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    lines.append(file.read())
            except OSError:
                continue
        return not any(task_id.encode() in line for line in lines)

    wait_for(is_gone, "the end of all processes of the task", 60)


def without_bubblewrap(served: Served, *names: str) -> Path:
    """Give the agent a path of its own, with these programs."""
    folder = served.lab.root.parent / "bin"
    folder.mkdir()
    for name in ("git", "tmux", "sh", "env", "cat", "id", "ls", "grep", "touch", "sleep", "tr", *names):
        (folder / name).symlink_to(shutil.which(name) or "")
    served.lab.env["PATH"] = str(folder)
    return folder


def test_c_39_it_is_not_served_without_a_box_unless_the_user_said_so(served: Served) -> None:
    served.boxed, served.command = True, LOOKS
    without_bubblewrap(served)

    served.begin()

    assert served.ended() == 5
    assert b"bwrap is not installed" in served.said
    assert served.record is None
    assert served.lab.swarm.tasks.list(finished=True) == ()
    served.start(env={"SWARM_SANDBOX_ALLOW_UNSANDBOXED": "true"})
    status = served.status()
    assert status["config"]["sandbox"] == "noop (bwrap is not installed)"
    assert status["log"][-1] | {"timestamp": ""} == {
        "timestamp": "",
        "level": "warning",
        "component": "agent/rev",
        "message": "the program runs without a box: noop (bwrap is not installed)",
    }
    assert served.until(served.submit("hello"), "completed")["output"].endswith("did: hello\n")
    served.end()
    assert b"without a box: noop (bwrap is not installed)" in served.said


def test_a_task_whose_box_cannot_be_made_is_refused(boxed: Served) -> None:
    folder = without_bubblewrap(boxed, "bwrap")
    boxed.start()
    (folder / "bwrap").unlink()

    code, said = boxed.ask("POST", "/task", {"prompt": "hello"})

    assert (code, said["error"]) == (500, "sandbox_error")
    assert "bwrap is not installed" in said["message"]
    assert boxed.lab.swarm.tasks.list(finished=True) == ()


@pytest.mark.parametrize(
    "line", ["enabled: false", "network: all", "read_only_paths: [/opt]", "read_write_paths: [/srv]"], ids=str
)
def test_a_file_in_a_repository_cannot_widen_a_box(boxed: Served, line: str, config: Path) -> None:
    text = f"port: 9000\ncommand: cat\nsandbox: {{{line}}}\n"
    boxed.lab.write({".swarm/agents/rev/config.yaml": text})
    boxed.begin("--config", str(boxed.root / "agents/rev/config.yaml"))
    assert boxed.ended() == 2
    assert b"is not for a file in a repository to say" in boxed.said

    config.write_text(text)  # the user's own
    boxed.begin("--config", str(config))
    wait_for(lambda: boxed.record is not None, "the server", 60)
    boxed.end()


def test_what_a_file_says_of_box_and_sessions_holds(boxed: Served, tmp_path: Path) -> None:
    sessions = tmp_path.resolve() / "sessions"
    says = "command: sh -c 'cat; grep -c lo /proc/net/dev; pwd'\nsandbox: {allow_network: false}\n"
    boxed.lab.write({".swarm/agents/rev/config.yaml": f"port: 9000\n{says}session_dir: {sessions}\n"})
    boxed.start("--config", str(boxed.root / "agents/rev/config.yaml"))

    done = boxed.until(boxed.submit("hello"), "completed")

    assert done["output"].split() == ["hello1", str(sessions / done["session_id"] / "work")]
    (task,) = boxed.lab.swarm.tasks.list(finished=True)
    assert task.box is not None
    assert task.box.network == "none"


def test_a_workdir_is_one_that_the_user_allows(boxed: Served, tmp_path: Path) -> None:
    allowed = tmp_path.resolve() / "allowed"
    allowed.mkdir(mode=0o755)
    boxed.start(env={"SWARM_TASKS_WORKDIRS": str(allowed)})

    code, said = boxed.ask("POST", "/task", {"prompt": "x", "workdir": str(tmp_path.resolve())})
    assert (code, said["error"]) == (400, "validation_error")
    done = boxed.until(boxed.submit("hello", workdir=str(allowed)), "completed")

    assert done["output"].endswith("did: hello\n")
    assert (allowed / "begun").exists()
