"""Several commands at once, and the user's own git among them: one wins, the rest say why not, nothing is half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.project.errors import Locked
from tests.support.procs import PROJECT, Crew

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]
#: What may be said to somebody who came second.
SECOND = {"WORKTREE_EXISTS", "BRANCH_EXISTS", "LOCKED", "SESSION_NOT_FOUND", "GIT_BUSY"}


def assert_whole(lab: Lab) -> None:
    """Every session is complete, and nothing is there that belongs to none."""
    assert lab.swarm.recover() == lab.swarm.recover()
    assert lab.swarm.operations.unfinished() == ()
    common = lab.root / ".git"
    agents = [agent for session in lab.swarm.sessions() for agent in session.agents]
    for agent in agents:
        tree = lab.root / agent.worktree
        assert lab.git("symbolic-ref", "--short", "HEAD", cwd=tree) == agent.branch
        assert lab.git("status", "--porcelain", cwd=tree) == ""
        assert not (common / "worktrees" / agent.admin / "locked").exists()
    branches = lab.git("for-each-ref", "--format=%(refname:short)", "refs/heads/swarm/").split()
    assert sorted(branches) == sorted(agent.branch for agent in agents)
    trees = {path.name for path in (lab.root / ".worktrees").glob("*/")}
    assert trees == {Path(agent.worktree).name for agent in agents}
    admins = {path.name for path in (common / "worktrees").glob("*") if not path.name.startswith("mine")}
    assert admins == {agent.admin for agent in agents}
    assert lab.git("for-each-ref", "refs/swarm/op/") == ""
    left = [path for path in (*common.rglob("*.lock"), *(lab.root / ".swarm").rglob("*.tmp")) if path.is_file()]
    assert left == []
    lab.git("fsck", "--connectivity-only", "--no-dangling")


def test_first_commands_of_a_repository_at_once(lab: Lab) -> None:
    before = lab.fingerprint()
    crew = Crew(lab)
    for _ in range(5):
        crew.add("attempt(lambda: Swarm.open(root).create(f's{number}', ['researcher', 'developer']))")

    results = crew.go()

    assert results == [["DONE"]] * 5
    assert len(lab.swarm.sessions()) == 5
    assert_whole(lab)
    lab.swarm.cleanup(everything=True)
    assert lab.fingerprint() == before


def test_same_session_one_wins(lab: Lab) -> None:
    crew = Crew(lab)
    for _ in range(5):
        crew.add("attempt(lambda: Swarm.open(root).create('fx', ['researcher', 'developer']))")

    results = sorted(result[0] for result in crew.go())

    assert results.count("DONE") == 1
    assert set(results) <= {"DONE", *SECOND}
    assert_whole(lab)


def test_create_against_cleanup(lab: Lab) -> None:
    before = lab.fingerprint()
    crew = Crew(lab)
    for _ in range(2):
        crew.add("for _ in range(6): attempt(lambda: Swarm.open(root).create('fx', ['researcher', 'developer']))")
        crew.add("for _ in range(6): attempt(lambda: Swarm.open(root).cleanup(['fx']))")

    results = crew.go()

    assert {word for result in results for word in result} <= {"DONE", *SECOND}
    assert_whole(lab)
    lab.swarm.cleanup(everything=True)
    after = lab.fingerprint()
    assert after == before


def test_the_users_own_git_at_the_same_time(lab: Lab) -> None:
    crew = Crew(lab)
    for _ in range(2):
        crew.add(
            "for n in range(5):\n"
            "    attempt(lambda: Swarm.open(root).create(f's{number}', ['researcher', 'developer']))\n"
            "    attempt(lambda: Swarm.open(root).cleanup([f's{number}']))\n"
        )
    crew.add(
        "for n in range(12):\n"
        "    open(os.path.join(root, 'log.txt'), 'a').write(f'{n}\\n')\n"
        "    git('add', 'log.txt'); done = git('commit', '-q', '-m', f'mine {n}')\n"
        "    said.append(done.returncode or done.stderr)\n"
    )
    crew.add(
        "for n in range(6):\n"
        "    said.append(git('worktree', 'add', '-q', '-b', f'mine/{n}', f'../mine{n}').returncode)\n"
        "    said.append(git('worktree', 'remove', '--force', f'../mine{n}').returncode)\n"
    )
    crew.add("for n in range(6):\n    git('pack-refs', '--all'); git('gc', '-q')\n    git('branch', f'side/{n}')\n")

    one, two, *_ = crew.go()

    assert set(one + two) <= {"DONE", *SECOND}, one + two
    assert "DONE" in one
    lab.swarm.recover()
    assert_whole(lab)
    assert int(lab.git("rev-list", "--count", "HEAD")) == 1 + lab.git("log", "--format=%s").count("mine ")
    assert len(lab.git("for-each-ref", "refs/heads/side").splitlines()) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="finds the orphan in /proc")
def test_an_orphaned_git_keeps_the_lock(lab: Lab, tmp_path: Path) -> None:
    """swarm is killed while its git writes files: nobody repairs under that git's hands."""
    gate, arrived = tmp_path / "gate", tmp_path / "arrived"
    os.mkfifo(gate)
    os.mkfifo(arrived)
    script = tmp_path / "slow"
    once = f'if mkdir "{tmp_path}/once" 2> /dev/null; then echo here > "{arrived}"; cat "{gate}" > /dev/null; fi'
    script.write_text(f"#!/bin/sh\n{once}\nexec cat\n")
    script.chmod(0o755)
    lab.write({".gitattributes": "*.slow filter=slow\n", "a.slow": "1\n"})
    lab.commit("slow")
    before = lab.fingerprint()
    lab.git("config", "filter.slow.smudge", f"'{script}'")
    code = "import sys; from swarm import Swarm; Swarm.open(sys.argv[1]).create('fx', ['developer'])"
    env = {**lab.env, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen([sys.executable, "-c", code, str(lab.root)], env=env)
    arrived.read_text()  # git waits in the filter
    process.send_signal(signal.SIGKILL)
    process.wait()

    with pytest.raises(Locked) as raised:
        lab.open(lock__timeout=0.2).recover()
    assert "create fx" in str(raised.value)

    gate.write_text("go on\n")
    report = lab.open(lock__timeout=20).recover()

    assert report.rolled_back == ("create of fx",)
    lab.git("config", "--remove-section", "filter.slow")
    assert lab.fingerprint() == before
