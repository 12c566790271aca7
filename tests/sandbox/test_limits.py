"""The limits of a box: the disk, which the supervisor watches, and memory, by whoever can hold it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm
from swarm.machine.run_folder import runfiles
from swarm.programs.values import LaunchSpec
from swarm.project.model import Boxed
from swarm.sandbox.bounds import limits
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

SPEC = LaunchSpec(("enter", "program"), {}, {})


def make_stand_in(folder: Path, script: str) -> str:
    """Put a manager of cgroups into a folder: this machine has none."""
    folder.mkdir(exist_ok=True)
    (folder / "systemd-run").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "systemd-run").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


#: Tells how it was called, and becomes the command as the real one does; the trial gets the limit that it asked for.
OBEYS = """echo "$@" >> "$(dirname "$0")/called"
limit=; while [ "$1" != -- ]; do case $1 in *MemoryMax=*) limit=${1#*MemoryMax=};; esac; shift; done; shift
case "$*" in *memory.max*) echo $limit; exit;; esac
exec "$@" """


def test_without_a_limit_of_memory_nobody_is_asked_for_a_cgroup() -> None:
    made = limits.held(SPEC, Boxed(), "", {}, [])

    assert made.argv == SPEC.argv
    assert json.loads(made.files[runfiles.HELD])["memory_by"] == ""


def test_a_cgroup_holds_memory_and_processes_of_all_together() -> None:
    environ = {"XDG_RUNTIME_DIR": "/run/user/1", "SECRET": "x"}

    made = limits.held(SPEC, Boxed(memory=1 << 30, processes=100), "/usr/bin/systemd-run", environ, [])

    begin, end = made.argv[: made.argv.index("--")], made.argv[made.argv.index("--") + 1 :]
    assert {"--scope", "--property=MemoryMax=1073741824", "--property=TasksMax=100"} <= set(begin)
    assert ("--user" in begin) == (os.geteuid() != 0)
    assert end == SPEC.argv
    assert made.env == {"XDG_RUNTIME_DIR": "/run/user/1"}
    assert json.loads(made.files[runfiles.HELD])["memory_by"] == limits.TOGETHER


@pytest.mark.parametrize(
    "script", ["exit 1", "echo max", "sleep 600", "shift 99; true"], ids=["refuses", "no limit", "hangs", "odd"]
)
def test_a_manager_that_holds_no_memory_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(limits, "_PATIENCE", 1.0)

    assert limits.manager({"PATH": make_stand_in(tmp_path / "bin", script)}) == ""


def test_a_manager_that_holds_memory_is_used(tmp_path: Path) -> None:
    path = make_stand_in(tmp_path / "bin", OBEYS)

    assert limits.manager({"PATH": path}) == str(tmp_path / "bin/systemd-run")
    assert limits.manager({"PATH": str(tmp_path / "nothing")}) == ""


@pytest.mark.skipif(shutil.which("du") is None, reason="no du")
def test_what_an_agent_hides_from_others_is_measured(tmp_path: Path, boxes: None) -> None:
    folder = tmp_path / "tree"
    (folder / "hidden").mkdir(parents=True)
    (folder / "hidden/data").write_bytes(os.urandom(3 << 20))
    (folder / "hidden").chmod(0)
    try:
        argv = limits.measuring(shutil.which("bwrap") or "", [str(folder)])
        done = subprocess.run(argv, capture_output=True, check=False)
    finally:
        (folder / "hidden").chmod(0o700)

    assert (done.returncode, done.stderr) == (0, b"")
    assert 3 << 10 <= int(done.stdout.split()[0]) < 4 << 10


GROWS = """sh -c 'i=0; while [ $i -lt 40 ]; do head -c 1048576 /dev/urandom > part$i; i=$((i+1)); done; touch all
while :; do sleep 0.1; done'"""


def test_an_agent_that_fills_the_disk_is_stopped_and_keeps_what_it_has(panes: PaneLab, boxes: None) -> None:
    swarm = Swarm.open(panes.root, environ={**panes.env, "SWARM_SANDBOX_DISK": "20MiB"})

    swarm.start("s", ["developer"], command=GROWS, sandbox=True)
    wait_for(lambda: not panes.swarm.why("developer", "s").status.runs, "its end")

    found = panes.swarm.why("developer", "s").status
    assert found.state == "stopped"
    assert "over its budget of 20.0 MiB on the disk" in found.detail
    parts = [path for path in os.listdir(panes.tree("developer", "s")) if path.startswith("part")]
    assert parts
    used = panes.swarm.boxes.explain("developer", "s").limits
    assert used is not None
    assert int(used["disk_used"]) >= 20 << 20
    wait_for(lambda: _told(panes, "developer@s"), "the word to the agent")
    wait_for(lambda: _told(panes, "user"), "the word to the user")


def _told(panes: PaneLab, address: str) -> bool:
    return any("on the disk" in one.message.subject for one in panes.swarm.messages.history(address))


def test_near_the_limit_agent_and_user_are_told_and_it_works_on(panes: PaneLab, boxes: None) -> None:
    swarm = Swarm.open(panes.root, environ={**panes.env, "SWARM_SANDBOX_DISK": "45MiB"})

    swarm.start("s", ["developer"], command=GROWS, sandbox=True)

    for address in ("developer@s", "user"):
        wait_for(lambda address=address: _told(panes, address), f"the word to {address}")  # type: ignore[misc]
    found = panes.swarm.why("developer", "s")
    assert found.status.runs
    assert "45.0 MiB on the disk used" in found.status.detail


def test_the_limits_are_shown(panes: PaneLab, boxes: None) -> None:
    environ = {**panes.env, "SWARM_SANDBOX_MEMORY": "2GiB", "SWARM_SANDBOX_DISK": "1GiB"}
    Swarm.open(panes.root, environ=environ).start("s", ["developer"], command="sleep 1000", sandbox=True)
    run_dir = panes.root / ".swarm/sessions/s/run/developer"
    wait_for((run_dir / runfiles.DISK).exists, "the first look at its disk")

    (agent,) = panes.swarm.status("s")[0].agents
    assert agent.limits is not None
    assert {name: value for name, value in agent.limits.items() if name != "disk_used"} == {
        "processes": 4096,
        "memory": 2 << 30,
        "tmp": 1 << 30,
        "disk": 1 << 30,
        "messages": 1000,
        "memory_by": agent.limits["memory_by"],
    }
    assert int(agent.limits["disk_used"]) > 0

    def typed(*words: str) -> str:
        command = [sys.executable, "-m", "swarm", *words]
        return subprocess.run(command, cwd=panes.root, env=panes.env, capture_output=True, text=True, check=True).stdout

    held = {"cgroup": "for all together", "process": "for each process"}[str(agent.limits["memory_by"])]
    words = f"4096 processes, memory 2GiB {held}, /tmp 1GiB, disk 1GiB"
    assert f"limits of developer@s: {words}" in typed("status")
    assert f"{words} (" in typed("why", "developer")
    assert f"{words} (" in typed("sandbox", "explain", "developer")
    told = json.loads(typed("status", "--json"))["data"]["sessions"][0]["agents"][0]["limits"]
    assert told["disk"] == 1 << 30


def test_a_box_in_a_cgroup_works_and_has_no_limit_for_each_process(panes: PaneLab, boxes: None, tmp_path: Path) -> None:
    path = make_stand_in(tmp_path / "bin", OBEYS)
    environ = {**panes.env, "PATH": path, "SWARM_SANDBOX_MEMORY": "500MiB"}

    Swarm.open(panes.root, environ=environ).start(
        "s", ["developer"], command="sh -c 'ulimit -v >said; sleep 600'", sandbox=True
    )

    said = panes.tree("developer", "s") / "said"
    wait_for(lambda: said.exists() and bool(said.read_text()), "the agent in its box")
    assert said.read_text() == "unlimited\n"
    assert "MemoryMax=524288000" in (tmp_path / "bin/called").read_text().splitlines()[-1]
    assert panes.swarm.boxes.explain("developer", "s").limits["memory_by"] == "cgroup"  # type: ignore[index]
