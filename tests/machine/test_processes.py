"""Ending an agent's processes: all of them, and never anybody else's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.kit import kill
from swarm.machine import processes as proc
from swarm.machine.run_folder import program_facts
from swarm.supervisor import launcher
from swarm.testing.terminal import DEADLINE, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

PYTHON = (sys.executable, "-I", "-S", "-c")
STAMP = f"a test in process {os.getpid()}"  # others run at the same time
STUBBORN = (
    "import os,signal,sys,time; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(3600)"
)
#: A child in a session of its own, whose pid is told.
PARENT = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, '-I', '-S', '-c', {STUBBORN!r}], start_new_session=True)
time.sleep(3600)
"""


class Crowd:
    """Starts processes and sees to it that none outlives the test."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []
        self.pids: list[kill.Process] = []

    def start(self, *argv: str, stamp: str = "") -> kill.Process:
        """Start a process of ours."""
        env = {**os.environ, **({"SWARM_AGENT_ID": stamp} if stamp else {})}
        started = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE)
        self._started.append(started)
        return self.know(started.pid)

    def know(self, pid: int) -> kill.Process:
        """Remember a process."""
        start = proc.start_of(pid)
        assert start is not None
        self.pids.append((pid, start))
        return pid, start

    def told(self) -> kill.Process:
        """Return the process whose pid the last one started has told."""
        pipe = self._started[-1].stdout
        assert pipe is not None
        return self.know(int(pipe.readline()))

    def close(self) -> None:
        """End all."""
        for one in self.pids:
            proc.send(*one, signal.SIGKILL)
        for started in self._started:
            assert started.stdout is not None
            started.stdout.close()
            started.wait(DEADLINE)


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd()
    yield made
    made.close()


def test_a_tree_is_a_process_and_all_below_it_parents_first(crowd: Crowd) -> None:
    parent = crowd.start(*PYTHON, PARENT)
    child = crowd.told()

    assert kill.tree(parent[0]) == [parent, child]
    assert kill.tree(child[0]) == [child]


def test_there_is_no_tree_below_nothing() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()

    assert kill.tree(ended.pid) == []
    assert kill.tree(-1) == []


@pytest.mark.parametrize("pid", [0, 1])
def test_there_is_no_tree_of_everybody(pid: int) -> None:
    assert kill.tree(pid) == []


def test_the_stamp_finds_what_left_the_tree(crowd: Crowd) -> None:
    parent = crowd.start(*PYTHON, PARENT, stamp=STAMP)
    child = crowd.told()
    crowd.start(*PYTHON, STUBBORN, stamp=STAMP + " and more")
    crowd.told()
    assert sorted(kill.stamped(STAMP)) == sorted((parent, child))

    kill.end([parent], 5)

    assert kill.stamped(STAMP) == [child]
    assert kill.stamped("no such stamp") == []


#: Ends well when it is asked, once another one was asked, too: it tells so, and waits for the other's word.
POLITE = """
import os, signal, sys, time
def end(*_):
    open(sys.argv[1], 'w').close()
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print(os.getpid(), flush=True)
time.sleep(3600)
"""


@pytest.mark.skipif(not proc.HAS_PROC, reason="ps shows the environment")
def test_the_stamp_is_seen_while_a_process_changes_its_program(crowd: Crowd, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.write_text(f"exec sh {again}\n")
    busy = crowd.start("sh", str(again), stamp=STAMP)

    missed = sum(busy not in kill.stamped(STAMP) for _ in range(200))

    assert missed == 0  # a single look misses about sixteen


def test_processes_are_asked_all_at_once_and_have_the_grace_to_end_well(crowd: Crowd, tmp_path: Path) -> None:
    words = [str(tmp_path / name) for name in ("one", "other")]
    polite = []
    for mine, others in (words, words[::-1]):
        polite.append(crowd.start(*PYTHON, POLITE, mine, others))
        crowd.told()

    assert kill.end(polite, DEADLINE) == []

    assert [started.wait(DEADLINE) for started in crowd._started] == [0, 0]


def test_processes_that_do_not_end_are_killed_when_the_grace_is_over(crowd: Crowd) -> None:
    stubborn = crowd.start(*PYTHON, STUBBORN)
    crowd.told()
    plain = crowd.start("sleep", "3600")

    assert kill.end([stubborn, plain], 0.2) == []

    assert [started.wait(DEADLINE) for started in crowd._started] == [-signal.SIGKILL, -signal.SIGTERM]


def test_a_stopped_process_hears_that_it_is_asked(crowd: Crowd) -> None:
    one = crowd.start("sleep", "3600")
    os.kill(one[0], signal.SIGSTOP)

    assert kill.end([one], DEADLINE) == []

    assert crowd._started[-1].wait(DEADLINE) == -signal.SIGTERM


def test_a_process_that_has_the_pid_of_another_is_never_hit(crowd: Crowd) -> None:
    pid, start = crowd.start("sleep", "3600")

    assert kill.end([(pid, start - 1), (pid, start + 1)], 0.05) == []

    assert proc.is_alive(pid, start)


def test_neither_this_process_nor_the_first_one_is_ended() -> None:
    mine = (os.getpid(), proc.start_of(os.getpid()) or 0)
    first = (1, proc.start_of(1) or 0)

    assert kill.end([mine, first], 0) == []

    assert not proc.send(*mine, signal.SIGKILL)
    assert not proc.send(*first, signal.SIGTERM)


# --- an agent ---------------------------------------------------------------------------------------


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def _end_agent(run_dir: Path, stamp: str, grace: float) -> list[kill.Process]:
    (left,) = kill.end_agents([(run_dir, stamp)], grace)
    return left


def test_of_several_agents_each_keeps_its_own_survivors_and_all_processes_are_looked_at_once(
    crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    one = crowd.start("sleep", "600", stamp=f"{STAMP} b")
    looks: list[str] = []
    listdir = os.listdir

    def seen(path: str) -> list[str]:
        looks.append(path)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", seen)

    left = kill.end_agents([(folder, f"{STAMP} {folder.name}") for folder in folders], 5)

    assert left == [[], [], []]
    assert not proc.is_alive(*one)
    assert looks == ["/proc"] * 2  # one for all, and one for what was left of b


def _launch(crowd: Crowd, run_dir: Path, *, grace: float) -> tuple[kill.Process, kill.Process]:
    """Start PARENT under a supervisor; return the supervisor and the child that left the group."""
    record = run_dir / "session.json"
    record.write_text('{"schema": 1, "operations": ["1"]}')
    spec = {
        "schema": 1,
        "operation": "1",
        "agent": "a",
        "session": "s",
        "root": "/",
        "record": str(record),
        "journal": "/none",
        "owner": {"pid": 1, "start": 0},
        "run_dir": str(run_dir),
        "gate_timeout": DEADLINE,
        "cwd": "/",
        "argv": [*PYTHON, PARENT],
        "env": {"PATH": os.environ["PATH"]},
        "stamp": STAMP,
        "grace": grace,
    }
    file = run_dir / "launch.json"
    file.touch(0o600)
    file.write_text(json.dumps(spec))
    supervisor = crowd.start(sys.executable, "-I", "-S", str(Path(launcher.__file__).resolve()), str(file))
    return supervisor, crowd.told()


def test_an_agent_is_ended_by_its_supervisor_which_tells_how(crowd: Crowd, run_dir: Path) -> None:
    supervisor, child = _launch(crowd, run_dir, grace=0.2)

    assert _end_agent(run_dir, STAMP, 10) == []

    assert not proc.is_alive(*supervisor)
    assert not proc.is_alive(*child)
    end = program_facts.read_exit(run_dir)
    assert end is not None
    assert end.cause == "stopped"
    assert end.signal in {signal.SIGTERM, signal.SIGKILL}  # the grace is short for a busy machine


def test_a_supervisor_with_more_patience_than_we_have_is_asked_again(crowd: Crowd, run_dir: Path) -> None:
    supervisor, child = _launch(crowd, run_dir, grace=600)

    assert _end_agent(run_dir, STAMP, 0) == []

    assert not proc.is_alive(*supervisor)
    assert not proc.is_alive(*child)
    end = program_facts.read_exit(run_dir)
    assert end is not None
    assert end.cause == "stopped"


def test_an_agent_without_supervisor_is_found_by_its_stamp(crowd: Crowd, run_dir: Path) -> None:
    supervisor, child = _launch(crowd, run_dir, grace=5)
    known = program_facts.read_process(run_dir)
    assert known is not None
    os.kill(supervisor[0], signal.SIGKILL)
    wait_for(lambda: not proc.is_alive(*supervisor), "the supervisor to die")
    assert child in kill.stamped(STAMP)

    assert _end_agent(run_dir, STAMP, 0.2) == []

    assert not program_facts.alive(known)
    assert not proc.is_alive(*child)


def test_a_stopped_supervisor_does_not_save_its_program(crowd: Crowd, run_dir: Path) -> None:
    supervisor, child = _launch(crowd, run_dir, grace=0.1)
    os.kill(supervisor[0], signal.SIGSTOP)

    assert _end_agent(run_dir, STAMP, 0.2) == []

    assert not proc.is_alive(*supervisor)
    assert not proc.is_alive(*child)


def test_facts_of_another_boot_or_process_end_nobody(crowd: Crowd, run_dir: Path) -> None:
    pid, start = crowd.start("sleep", "3600")
    (run_dir / "process.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "supervisor_pid": pid,
                "supervisor_start": start + 1,
                "pid": pid,
                "pid_start": start - 1,
                "boot_id": proc.boot_id(),
                "started_ms": 0,
                "argv0": "x",
                "operation": "1",
            }
        )
    )

    assert _end_agent(run_dir, STAMP, 0) == []
    text = (
        (run_dir / "process.json").read_text().replace(str(start + 1), str(start)).replace(str(start - 1), str(start))
    )
    (run_dir / "process.json").write_text(text.replace(proc.boot_id(), "another boot"))
    assert _end_agent(run_dir, STAMP, 0) == []

    assert proc.is_alive(pid, start)


@pytest.mark.parametrize("who", ["supervisor_pid", "pid"])
def test_facts_that_name_a_stranger_end_nobody(crowd: Crowd, run_dir: Path, who: str) -> None:
    """The agent itself can write there: its word must not turn swarm against others."""
    pid, start = crowd.start("sleep", "3600")
    none = {"supervisor_pid": 0, "supervisor_start": 0, "pid": 0, "pid_start": 0}
    said = {**none, who: pid, who.replace("pid", "start") if who != "pid" else "pid_start": start}
    (run_dir / "process.json").write_text(
        json.dumps({"schema": 1, **said, "boot_id": proc.boot_id(), "started_ms": 0, "argv0": "x", "operation": "1"})
    )
    known = program_facts.read_process(run_dir)
    assert known is not None
    assert program_facts.supervised(known) or program_facts.alive(known)

    assert _end_agent(run_dir, STAMP, 0) == []

    assert proc.is_alive(pid, start)


def test_an_agent_that_never_ran_needs_no_end(run_dir: Path) -> None:
    assert _end_agent(run_dir, "", 5) == []
    assert _end_agent(run_dir / "none", STAMP, 5) == []


# --- without /proc ----------------------------------------------------------------------------------


def test_without_proc_the_same_is_asked_of_ps(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = crowd.start(*PYTHON, PARENT, stamp=f"stamp-{os.getpid()}")
    child = crowd.told()
    monkeypatch.setattr(proc, "HAS_PROC", False)

    found = kill.tree(parent[0])

    assert [pid for pid, _ in found] == [parent[0], child[0]]
    assert all(proc.is_alive(*one) for one in found)
    assert abs(found[0][1] - (proc.start_of(os.getpid()) or 0)) < 3600
    assert sorted(kill.stamped(f"stamp-{os.getpid()}")) == sorted(found)
    assert kill.end(found, 0.1) == []
    assert proc.start_of(parent[0]) is None
