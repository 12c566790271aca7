"""A session's whole life, typed into a shell; and what happens when it is cut short."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.slow import Slow

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.lab import Lab
    from tests.support.shell import Shell

pytestmark = pytest.mark.e2e


def _users(lab: Lab) -> dict[str, Any]:
    """Return what of the repository is the user's; the line in info/exclude stays, the filter is the test's."""
    return {key: value for key, value in lab.fingerprint().items() if key not in {"exclude", "config"}}


@pytest.mark.parametrize("detached", [False, True], ids=["on a branch", "detached"])
def test_four_agents_work_are_cleaned_up_and_come_back(shell: Shell, detached: bool) -> None:
    lab = shell.lab
    if detached:
        lab.git("checkout", "--quiet", "--detach")
    before = _users(lab)
    below = lab.root / "src"
    roles = "researcher,developer:2,lead=architect"

    made = shell(f"swarm worktree create feature-x --roles {roles}", cwd=below)
    assert made.returncode == 0, made.stderr
    following = next(line for line in made.stderr.splitlines() if line.startswith("next: "))
    where = shell(f"{following.removeprefix('next: ')} && pwd", cwd=below)
    assert where.stdout.strip() == str(lab.tree("researcher"))

    lab.write({"src/app.py": "print('better')\n", "idea.txt": "keep me\n"}, cwd=lab.tree("developer-1"))
    lab.write({"plan.txt": "a plan\n"}, cwd=lab.tree("lead"))
    tip = lab.commit("a plan", cwd=lab.tree("lead"))

    refused = shell("swarm cleanup feature-x")
    assert refused.returncode == 4
    assert "idea.txt" in refused.stderr
    assert lab.tree("researcher").exists()

    forced = shell("swarm cleanup feature-x --force", cwd=below)
    assert forced.returncode == 0, forced.stderr
    assert "removed 4 worktrees and 4 branches" in forced.stdout
    assert _users(lab) == before
    assert not any(lab.root.glob(".worktrees/*-feature-x"))

    back = shell("swarm restore feature-x")
    assert back.returncode == 0, back.stderr
    assert (lab.tree("developer-1") / "idea.txt").read_text() == "keep me\n"
    assert (lab.tree("developer-1") / "src" / "app.py").read_text() == "print('better')\n"
    assert lab.git("rev-parse", "HEAD", cwd=lab.tree("lead")) == tip

    listed = json.loads(shell("swarm worktree list --json").stdout)
    assert {(one["agent"], one["dirty"]) for one in listed["data"]["worktrees"]} == {
        *(("researcher", False), ("developer-1", True), ("developer-2", False), ("lead", False))
    }


class SlowShell(Slow):
    """Where swarm is started, and stops in the middle."""

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell.lab)
        self.shell = shell

    def begin(self, *args: str) -> subprocess.Popen[str]:
        """Start swarm; return when git is in the middle of writing a worktree."""
        fd = os.open(self.begun, os.O_RDONLY | os.O_NONBLOCK)
        process = self.shell.start(*args)
        deadline = time.monotonic() + 60
        try:
            while not select.select([fd], [], [], 0.1)[0]:
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    pytest.fail(f"swarm did not come to the filter: {process.communicate()}")
            assert os.read(fd, 100) == b"begun\n"
        finally:
            os.close(fd)
        return process


@pytest.fixture
def slow(shell: Shell) -> SlowShell:
    return SlowShell(shell)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_of_a_create_leaves_nothing(slow: SlowShell, number: signal.Signals) -> None:
    lab = slow.shell.lab
    before = _users(lab)
    process = slow.begin("worktree", "create", "feature-x", "--roles", "developer")

    process.send_signal(number)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 128 + number
    assert out == ""
    first = err.splitlines()[0]
    assert first.startswith("stopping: swarm undoes the operation")
    assert f"error: cannot create session feature-x: interrupted by {number.name}" in err
    assert "Traceback" not in err
    assert _users(lab) == before
    assert not any(lab.root.glob(".worktrees/*-feature-x"))
    assert json.loads(slow.shell("swarm recover --json").stdout)["data"]["rolled_back"] == []


def test_who_wants_it_quiet_is_told_only_what_came_of_it(slow: SlowShell) -> None:
    process = slow.begin("worktree", "create", "feature-x", "--roles", "developer", "--quiet")

    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1]

    assert "stopping" not in err
    assert err.startswith("error: cannot create session feature-x: interrupted by SIGINT")


def test_a_second_signal_ends_at_once_and_the_next_command_tidies_up(slow: SlowShell) -> None:
    lab = slow.shell.lab
    before = _users(lab)
    process = slow.begin("worktree", "create", "feature-x", "--roles", "developer")

    # Both are pending when swarm runs again: the second arrives in the middle of the rollback.
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)

    assert process.returncode in {130, 143}
    assert "Traceback" not in err
    slow.shell.lab.git("config", "filter.slow.smudge", "cat")
    done = _until_free(slow.shell, "swarm recover --json")
    assert done.returncode == 0, done.stderr
    assert _users(lab) == before
    assert slow.shell("swarm worktree create feature-x --roles developer").returncode == 0


def _until_free(shell: Shell, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command; a git that outlives a killed swarm keeps the lock, so it is ended first, as a user would."""
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/cwd").startswith(str(shell.lab.root)):
                os.kill(int(entry), signal.SIGKILL)
        except OSError:
            continue
    return shell(line)


def test_a_process_that_was_killed_is_tidied_up_after(slow: SlowShell) -> None:
    lab = slow.shell.lab
    before = _users(lab)
    process = slow.begin("worktree", "create", "feature-x", "--roles", "developer")
    process.kill()
    process.communicate(timeout=60)

    checked = slow.shell("swarm validate")
    assert (checked.returncode, "is not finished" in checked.stdout) == (2, True)
    slow.shell.lab.git("config", "filter.slow.smudge", "cat")
    done = _until_free(slow.shell, "swarm recover")

    assert (done.returncode, done.stdout) == (0, "rolled back: create of feature-x\n")
    assert _users(lab) == before
    assert slow.shell("swarm validate").returncode == 0


def test_two_creates_at_once_both_do_or_one_says_why(shell: Shell) -> None:
    shell.env["SWARM_LOCK_TIMEOUT"] = "50"
    both = [shell.start("worktree", "create", "feature-x", "--roles", "researcher,developer") for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    codes = sorted(process.returncode for process in both)

    assert codes == [0, 3], said
    assert len(json.loads(shell("swarm worktree list --json").stdout)["data"]["worktrees"]) == 2


def test_two_creates_of_different_sessions_wait_for_each_other(shell: Shell) -> None:
    shell.env["SWARM_LOCK_TIMEOUT"] = "50"
    both = [shell.start("worktree", "create", name, "--roles", "researcher,developer") for name in ("one", "two")]
    said = [process.communicate(timeout=60) for process in both]

    assert [process.returncode for process in both] == [0, 0], said
    assert len(json.loads(shell("swarm worktree list --json").stdout)["data"]["worktrees"]) == 4


def test_a_create_that_waits_for_the_lock_says_who_has_it(slow: SlowShell) -> None:
    process = slow.begin("worktree", "create", "feature-x", "--roles", "developer")

    waiting = slow.shell("SWARM_LOCK_TIMEOUT=0 swarm cleanup --all")
    slow.go()
    process.communicate(timeout=60)

    assert process.returncode == 0
    assert waiting.returncode == 75
    assert "swarm create feature-x" in waiting.stderr


def test_a_git_hooks_environment_does_not_lead_astray(shell: Shell, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "other")], env=shell.env, check=True)

    done = shell(f"GIT_DIR='{tmp_path}/other/.git' swarm worktree create feature-x --roles developer")

    assert done.returncode == 0, done.stderr
    assert shell.lab.tree("developer").is_dir()
