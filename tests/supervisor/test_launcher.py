"""The launcher: a real program in a real terminal, from the gate to the end of the last grandchild."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine import processes
from swarm.machine.run_folder import program_facts, runfiles
from swarm.supervisor import gate, launcher
from swarm.testing.terminal import DEADLINE, Pane, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

LAUNCHER = str(Path(launcher.__file__).resolve())
OPERATION = "20260101-1"
#: A process that nobody but SIGKILL ends; tells its pid.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
open(sys.argv[1] + '.new', 'w').write(str(os.getpid()))
os.rename(sys.argv[1] + '.new', sys.argv[1])
time.sleep(3600)
"""
#: Starts a child in a session of its own, and a daemon: their parents are gone, they ignore SIGTERM.
FAMILY = f"""
import os, subprocess, sys, time
code = {STUBBORN!r}
here = os.environ['HERE']
python = [sys.executable, '-I', '-S', '-c']
subprocess.Popen([*python, code, here + '/child'], start_new_session=True)
subprocess.Popen([*python, code, here + '/plain'])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [*python, code, here + '/daemon'])
    os._exit(0)
while not all(os.path.exists(here + '/' + name) for name in ('child', 'plain', 'daemon')):
    time.sleep(0.01)
"""
MEMBERS = ("child", "plain", "daemon")
TELL = "open(os.environ['HERE'] + '/{}', 'w').close()\n"


class Site:
    """A session's folder with a launch file, and the pane in which it is launched."""

    def __init__(self, folder: Path) -> None:
        self.here = folder
        self.session = folder / "state" / "sessions" / "s"
        self.run_dir = self.session / "run" / "developer"
        self.run_dir.mkdir(parents=True, mode=0o700)
        self.cwd = folder / "work tree"
        self.cwd.mkdir()
        self.record = self.session / "session.json"
        self.journal = folder / "state" / "journal.json"
        self.journal.write_text("{}")
        self.file = self.run_dir / "launch.json"
        self.panes: list[Pane] = []

    def write(self, code: str = "", **fields: Any) -> None:
        """Write the launch file of a program in Python, or of ``argv``."""
        start = processes.start_of(os.getpid())
        spec = {
            "schema": 1,
            "operation": OPERATION,
            "agent": "developer",
            "session": "s",
            "root": str(self.here),
            "record": str(self.record),
            "journal": str(self.journal),
            "owner": {"pid": os.getpid(), "start": start},
            "run_dir": str(self.run_dir),
            "gate_timeout": DEADLINE,
            "cwd": str(self.cwd),
            "argv": [sys.executable, "-I", "-S", "-c", "import os, signal, sys, time\n" + code],
            "env": {"HERE": str(self.here), "PATH": os.environ["PATH"], "TERM": "dumb"},
            "stamp": "s/developer",
            "grace": 0.3,
            **fields,
        }
        fd = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            json.dump(spec, file)

    def commit(self, *operations: str) -> None:
        """Put the session's record in place."""
        new = self.session / "new"
        new.write_text(json.dumps({"schema": 1, "operations": operations or [OPERATION]}))
        new.rename(self.record)

    def launch(self, *, pass_fds: tuple[int, ...] = ()) -> Pane:
        """Open the pane."""
        env = {"PATH": os.environ["PATH"], "TMUX": "/tmp/t,1,0", "TMUX_PANE": "%1", "TERM": "dumb", "MORE": "no"}
        pane = Pane([sys.executable, "-I", "-S", LAUNCHER, str(self.file)], env=env, pass_fds=pass_fds)
        self.panes.append(pane)
        return pane

    def run(self, code: str = "", **fields: Any) -> Pane:
        """Launch a program that is committed already."""
        self.write(code, **fields)
        self.commit()
        return self.launch()

    def at_gate(self, pane: Pane) -> None:
        """Wait until the launcher has decided about every signal, which it does just before it looks at the gate."""
        wait_for(lambda: _is_prepared(pane.pid), "the launcher to be at the gate")

    def saw(self, name: str) -> bool:
        """Whether the program left this file."""
        return (self.here / name).exists()

    def wait(self, *names: str) -> None:
        """Wait for files that the program leaves."""
        wait_for(lambda: all(self.saw(name) for name in names), f"the program to write {names}")

    def pid(self, name: str) -> int:
        """Return the pid that a process has written down."""
        return int((self.here / name).read_text())

    @property
    def process(self) -> program_facts.Process:
        """The facts about the process."""
        found = program_facts.read_process(self.run_dir)
        assert found is not None
        return found

    @property
    def exit(self) -> program_facts.Exit:
        """The facts about its end."""
        found = program_facts.read_exit(self.run_dir)
        assert found is not None
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Give a place with a launch to write."""
    made = Site(tmp_path)
    yield made
    for pane in made.panes:
        pane.close()
    for name in MEMBERS:
        if made.saw(name) and (start := processes.start_of(made.pid(name))) is not None:
            processes.send(made.pid(name), start, signal.SIGKILL)


CAUGHT = (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def _is_prepared(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    masks = ((_mask(status, "SigCgt"), CAUGHT), (_mask(status, "SigIgn"), IGNORED))
    return all(mask & 1 << (signum - 1) for mask, wanted in masks for signum in wanted)


def _mask(status: str, field: str) -> int:
    found = re.search(rf"^{field}:\s*(\w+)$", status, re.MULTILINE)
    assert found is not None
    return int(found[1], 16)


def _not_started(site: Site, pane: Pane, words: str, code: int = 0) -> None:
    assert pane.ended() == code
    assert words in pane.text
    assert "Traceback" not in pane.text
    assert not site.saw("ran")
    assert not site.file.exists()
    assert os.listdir(site.run_dir) == []


RAN = TELL.format("ran")


# --- the gate ---------------------------------------------------------------------------------------


def test_the_program_runs_only_after_the_commit(site: Site) -> None:
    site.write(RAN)
    pane = site.launch()
    site.at_gate(pane)
    site.commit("an earlier operation")
    assert not site.saw("ran")
    assert site.file.exists()
    assert pane.is_running()

    site.commit("an earlier operation", OPERATION)

    site.wait("ran")
    assert pane.ended() == 0


def test_a_start_that_was_rolled_back_never_runs_the_program(site: Site) -> None:
    site.write(RAN)
    pane = site.launch()
    site.at_gate(pane)

    site.journal.unlink()

    _not_started(site, pane, "[swarm] developer was not started: the start was rolled back")


def test_a_session_without_the_operation_does_not_open_the_gate(site: Site) -> None:
    site.write(RAN)
    site.commit("another operation")
    site.journal.unlink()

    _not_started(site, site.launch(), "rolled back")


def test_a_dead_owner_closes_the_gate(site: Site) -> None:
    with subprocess.Popen(["sleep", "3600"]) as owner:
        site.write(RAN, owner={"pid": owner.pid, "start": processes.start_of(owner.pid)})
        pane = site.launch()
        site.at_gate(pane)
        assert pane.is_running()

        owner.kill()

        _not_started(site, pane, "the swarm command that started it is gone")


def test_a_process_with_the_owners_pid_is_not_the_owner(site: Site) -> None:
    site.write(RAN, owner={"pid": os.getpid(), "start": 1})

    _not_started(site, site.launch(), "is gone")


def test_the_gate_does_not_wait_for_ever(site: Site) -> None:
    site.write(RAN, gate_timeout=0.05)

    _not_started(site, site.launch(), "the start was not complete after 0.05 s")


def test_a_commit_counts_though_owner_and_journal_are_gone(site: Site) -> None:
    site.write(RAN, owner={"pid": os.getpid(), "start": 1}, gate_timeout=0)
    site.journal.unlink()
    site.commit()

    assert site.launch().ended() == 0
    assert site.saw("ran")


def test_a_record_written_while_the_gate_looks_away_still_opens_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record not there, then committed, then the journal entry goes: the second look finds the record."""
    site.write(RAN)
    launch = gate.read(str(site.file))

    def commit_now(*_: object, **__: object) -> str:
        site.commit()
        return "the start was rolled back"

    monkeypatch.setattr(gate, "_closed", commit_now)
    gate.wait(launch, None)  # type: ignore[arg-type]  # it never comes to waiting


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_at_the_gate_ends_the_launcher_without_a_start(site: Site, signum: int, code: int) -> None:
    site.write(RAN)
    pane = site.launch()
    site.at_gate(pane)

    pane.send(signum)

    _not_started(site, pane, "it was stopped first", code)


def test_stray_keys_at_the_gate_change_nothing(site: Site) -> None:
    site.write(RAN)
    pane = site.launch()
    site.at_gate(pane)
    pane.type("\x03\x1c\x1a")
    pane.see("^Z")

    site.commit()

    assert pane.ended() == 0
    assert site.saw("ran")


def test_one_launch_file_starts_one_program(site: Site) -> None:
    assert site.run(RAN).ended() == 0
    (site.here / "ran").unlink()

    pane = site.launch()

    assert pane.ended() == 3
    assert "was started before" in pane.text
    assert not site.saw("ran")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o622])
def test_a_launch_file_that_others_can_read_is_refused(site: Site, mode: int) -> None:
    site.write(RAN)
    site.commit()
    site.file.chmod(mode)

    _not_started(site, site.launch(), "it is not private", 70)


@pytest.mark.parametrize(
    "change",
    [{"schema": 2}, {"argv": []}, {"argv": "ls"}, {"env": {"A": 1}}, {"cwd": "a\0b"}, {"gate_timeout": "soon"}],
    ids=str,
)
def test_a_launch_file_of_another_form_is_refused(site: Site, change: dict[str, Any]) -> None:
    site.write(RAN, **change)
    site.commit()

    _not_started(site, site.launch(), "cannot use the launch file", 70)


# --- the program ------------------------------------------------------------------------------------


def test_the_program_gets_exactly_the_environment_asked_for(site: Site) -> None:
    code = "open(os.environ['HERE'] + '/env', 'wb').write(open('/proc/self/environ', 'rb').read())"
    env = {
        "HERE": str(site.here),
        "ODD": "a=b\nc \udcff ü #(x) ;",
        "EMPTY": "",
        "TMUX": "/tmp/other,2,0",
        "TMUX_PANE": "%7",
        "SWARM_AGENT_ID": "an outer one",
    }

    assert site.run(code, env=env).ended() == 0

    found = (site.here / "env").read_bytes().removesuffix(b"\0").split(b"\0")
    assert sorted(found) == sorted(
        (
            b"HERE=" + os.fsencode(site.here),
            b"ODD=a=b\nc \xff \xc3\xbc #(x) ;",
            b"EMPTY=",
            b"SWARM_AGENT_ID=s/developer",
            b"SWARM_RUN_DIR=" + os.fsencode(site.run_dir),
        )
    )


def test_the_program_is_found_on_its_own_path_and_runs_in_its_worktree(site: Site) -> None:
    tool = site.here / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\npwd >"{site.here}/pwd"\nprintf "%s|" "$@" >"{site.here}/args"\n')
    tool.chmod(0o755)
    words = ["tool", "", "a b", "#(date)", ";", "-x"]

    assert site.run(argv=words, env={"PATH": f"/nowhere:{tool.parent}:/usr/bin:/bin"}).ended() == 0

    assert (site.here / "pwd").read_text() == f"{site.cwd}\n"
    assert (site.here / "args").read_text() == "|a b|#(date)|;|-x|"


def test_the_launch_file_is_gone_before_the_program_runs(site: Site) -> None:
    code = f"open(os.environ['HERE'] + '/ran', 'w').write(repr(os.listdir({str(site.run_dir)!r})))"

    assert site.run(code).ended() == 0

    assert (site.here / "ran").read_text() == "['process.json']"
    assert {stat.S_IMODE(path.stat().st_mode) for path in site.run_dir.iterdir()} == {0o600}


def test_the_program_has_the_foreground_and_no_signal_changed(site: Site) -> None:
    code = (
        "open(os.environ['HERE'] + '/status', 'w').write(open('/proc/self/status').read())\n"
        "sys.exit(0 if os.tcgetpgrp(0) == os.getpgrp() == os.getpid() and all(map(os.isatty, range(3))) else 9)"
    )
    # Through sh, because Python itself ignores some.
    shell = 'cat /proc/self/status >"$HERE/status"'
    assert site.run(code).ended() == 0
    site.run(argv=["sh", "-c", shell]).ended()

    status = (site.here / "status").read_text()
    assert [_mask(status, field) for field in ("SigBlk", "SigIgn", "SigCgt")] == [0, 0, 0]


def test_the_program_inherits_no_descriptor(site: Site) -> None:
    """Not even the lock of the swarm command that opened the pane, should it have leaked."""
    lock = os.open(site.journal, os.O_RDONLY)
    leaked = fcntl.fcntl(lock, fcntl.F_DUPFD, 50)
    site.write("open(os.environ['HERE'] + '/fds', 'w').write(' '.join(os.listdir('/proc/self/fd')))")
    site.commit()

    pane = site.launch(pass_fds=(leaked,))

    assert pane.ended() == 0
    assert {int(name) for name in (site.here / "fds").read_text().split()} <= {0, 1, 2, 3, 4}
    os.close(lock)
    os.close(leaked)


def test_process_json_tells_which_processes_they_are(site: Site) -> None:
    pane = site.run(RAN + "sys.stdin.readline()")
    site.wait("ran")

    known = site.process
    assert (known.supervisor_pid, known.operation) == (pane.pid, OPERATION)
    assert known.boot_id == processes.boot_id()
    assert known.argv0 == sys.executable
    assert abs(known.started_ms - program_facts.now_ms()) < 60_000
    assert program_facts.alive(known)
    assert program_facts.supervised(known)
    seen = processes.look(known.pid)
    assert seen is not None
    assert seen.ppid == pane.pid

    pane.type("\n")
    assert pane.ended() == 0
    assert not program_facts.alive(known)
    assert not program_facts.supervised(known)


# --- how it ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "status", "words", "expected"),
    [
        ("sys.exit(0)", 0, "developer ended: exit status 0", (0, None, "exited")),
        ("sys.exit(3)", 3, "developer ended: exit status 3", (3, None, "exited")),
        ("os.kill(os.getpid(), 9)", 137, "developer ended: SIGKILL", (None, 9, "signal")),
        ("os.kill(os.getpid(), 40)", 168, "developer ended: signal 40", (None, 40, "signal")),
    ],
)
def test_how_the_program_ended_is_written_down_and_passed_on(
    site: Site, code: str, status: int, words: str, expected: tuple[object, ...]
) -> None:
    pane = site.run("print('last words')\nsys.stdout.flush()\n" + code)

    assert pane.ended() == status
    assert pane.text.split("\r\n")[-2] == f"[swarm] {words}"
    assert "last words" in pane.text
    end = site.exit
    assert (end.code, end.signal, end.cause) == expected
    assert end.is_of(site.process)
    assert (end.operation, end.boot_id) == (OPERATION, processes.boot_id())
    assert site.process.started_ms <= end.ended_ms <= program_facts.now_ms()


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"argv": ["no-such-program"]}, 127, "No such file or directory: no-such-program"),
        ({"argv": ["/no/such/program"]}, 127, "No such file or directory: /no/such/program"),
        ({"argv": ["/etc/passwd"]}, 126, "Permission denied: /etc/passwd"),
        ({"cwd": "/no/such/tree"}, 126, "No such file or directory: /no/such/tree"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(site: Site, fields: dict[str, Any], status: int, words: str) -> None:
    pane = site.run(**fields)

    assert pane.ended() == status
    assert f"[swarm] cannot start developer: {words}" in pane.text
    assert "Traceback" not in pane.text
    assert (site.exit.code, site.exit.cause) == (status, "exited")
    assert site.exit.is_of(site.process)


def test_without_a_place_for_its_facts_nothing_is_started(site: Site) -> None:
    pane = site.run(RAN, run_dir=str(site.here / "gone"))

    assert pane.ended() == 126
    assert "developer was not started: No such file or directory" in pane.text
    assert not site.saw("ran")


def test_an_earlier_runs_facts_are_gone_when_the_program_runs(site: Site) -> None:
    assert site.run("sys.exit(3)").ended() == 3
    program_facts.write_state(site.run_dir, "waiting", "for an answer")

    pane = site.run(RAN + "sys.stdin.readline()")
    site.wait("ran")

    assert program_facts.read_exit(site.run_dir) is None
    assert program_facts.read_state(site.run_dir) is None
    pane.type("\n")
    assert pane.ended() == 0


def test_a_late_supervisor_leaves_the_facts_of_a_later_run_alone(site: Site) -> None:
    pane = site.run(RAN + "sys.stdin.readline()")
    site.wait("ran")
    later = {**json.loads((site.run_dir / runfiles.PROCESS).read_text()), "supervisor_pid": 1}
    runfiles.write(str(site.run_dir), runfiles.PROCESS, later)

    pane.type("\n")

    assert pane.ended() == 0
    assert program_facts.read_exit(site.run_dir) is None


def test_the_terminal_is_put_back_as_it_was(site: Site) -> None:
    pane = site.run("import tty\ntty.setraw(0)\nsys.exit(5)")

    assert pane.ended() == 5
    assert pane.modes_now() == pane.modes
    assert "\r\n[swarm] developer ended: exit status 5\r\n" in pane.text


def _hears(signum: str, name: str) -> str:
    """Give a program that waits for a signal, leaves a file, and then reads until ``end``.

    Not with a handler: one that comes just before the program begins to read would be run after it.
    """
    return (
        f"signal.signal(signal.{signum}, lambda *_: None)\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.{signum}])\n"
        f"{RAN}\nsignal.sigwait([signal.{signum}])\n{TELL.format(name)}\n"
        "while sys.stdin.readline() != 'end\\n': pass"
    )


# --- keys and signals -------------------------------------------------------------------------------


def test_ctrl_c_reaches_the_program_and_not_its_supervisor(site: Site) -> None:
    pane = site.run(_hears("SIGINT", "interrupted"))
    site.wait("ran")

    pane.type("\x03")
    site.wait("interrupted")

    assert program_facts.alive(site.process)
    assert program_facts.supervised(site.process)
    pane.type("end\n")
    assert pane.ended() == 0


def test_ctrl_c_ends_a_program_that_does_not_care(site: Site) -> None:
    pane = site.run(RAN + "signal.signal(signal.SIGINT, signal.SIG_DFL)\n" + TELL.format("set") + "time.sleep(3600)")
    site.wait("set")

    pane.type("\x03")

    assert pane.ended() == 130
    assert (site.exit.signal, site.exit.cause) == (signal.SIGINT, "signal")


def test_ctrl_z_does_not_leave_a_program_stopped_for_ever(site: Site) -> None:
    pane = site.run(_hears("SIGCONT", "again"))
    site.wait("ran")

    pane.type("\x1a")
    site.wait("again")

    pane.type("end\n")
    assert pane.ended() == 0


def test_stopping_ends_the_whole_tree(site: Site) -> None:
    pane = site.run(FAMILY + "time.sleep(3600)")
    site.wait(*MEMBERS)
    pids = [site.pid(name) for name in MEMBERS] + [site.process.pid]

    pane.send(signal.SIGTERM)

    code = pane.ended()
    assert [processes.start_of(pid) for pid in pids] == [None] * 4
    assert site.exit.cause == "stopped"
    ended_by = signal.Signals(code - 128)
    assert ended_by in {signal.SIGTERM, signal.SIGKILL}  # the grace is short for a busy machine
    assert site.exit.signal == ended_by
    assert f"developer was stopped: {ended_by.name}" in pane.text


def test_a_killed_pane_ends_the_whole_tree(site: Site) -> None:
    pane = site.run(FAMILY + "time.sleep(3600)")
    site.wait(*MEMBERS)
    pids = [site.pid(name) for name in MEMBERS] + [site.process.pid]

    pane.hang_up()

    pane.ended()
    assert [processes.start_of(pid) for pid in pids] == [None] * 4
    assert site.exit.cause == "hangup"


def test_what_a_program_leaves_behind_is_ended(site: Site) -> None:
    pane = site.run(FAMILY + "sys.exit(4)")

    assert pane.ended() == 4
    assert [processes.start_of(site.pid(name)) for name in MEMBERS] == [None] * 3
    assert (site.exit.code, site.exit.cause) == (4, "exited")


def test_a_program_may_end_well_when_it_is_stopped(site: Site) -> None:
    """It has the grace for that, and may run another program meanwhile."""
    code = (
        "import subprocess\n"
        "def stop(*_):\n"
        "    subprocess.run(['sh', '-c', 'sleep 0.2; : >\"$HERE/saved\"'], check=True)\n"
        "    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, stop)\n" + RAN + "time.sleep(3600)"
    )
    pane = site.run(code, grace=DEADLINE)
    site.wait("ran")

    pane.send(signal.SIGTERM)

    assert pane.ended() == 7
    assert site.saw("saved")
    assert (site.exit.code, site.exit.signal, site.exit.cause) == (7, None, "stopped")


def test_a_second_signal_cuts_the_grace_short(site: Site) -> None:
    code = "signal.signal(signal.SIGTERM, lambda *_: " + TELL.format("asked").strip() + ")\n" + RAN
    pane = site.run(code + "while True: time.sleep(60)", grace=600)
    site.wait("ran")
    pane.send(signal.SIGTERM)
    site.wait("asked")

    pane.send(signal.SIGTERM)

    assert pane.ended() == 137
    assert (site.exit.signal, site.exit.cause) == (signal.SIGKILL, "stopped")


def test_a_stopped_program_is_ended_politely_too(site: Site) -> None:
    code = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(6))\n" + RAN + "os.kill(os.getpid(), signal.SIGSTOP)\n"
    pane = site.run(code + "time.sleep(3600)", grace=DEADLINE)
    site.wait("ran")
    wait_for(lambda: "T (stopped)" in Path(f"/proc/{site.process.pid}/status").read_text(), "the program to stop")

    pane.send(signal.SIGTERM)

    assert pane.ended() == 6


def test_orphans_are_reaped_while_the_program_runs(site: Site) -> None:
    code = (
        "if os.fork() == 0:\n"
        "    pid = os.fork()\n"
        "    if pid:\n"
        "        open(os.environ['HERE'] + '/orphan.new', 'w').write(str(pid))\n"
        "        os.rename(os.environ['HERE'] + '/orphan.new', os.environ['HERE'] + '/orphan')\n"
        "        os._exit(0)\n"
        "    while os.getppid() not in (os.getsid(0), 1): time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "os.wait()\nsys.stdin.readline()"
    )
    pane = site.run(code)
    site.wait("orphan")

    wait_for(lambda: not Path(f"/proc/{site.pid('orphan')}").exists(), "the orphan to be reaped")

    pane.type("\n")
    assert pane.ended() == 0


def test_a_program_whose_facts_cannot_be_written_never_runs(site: Site) -> None:
    """It runs only after process.json names it, so that no program is ever without a name."""
    (site.run_dir / runfiles.PROCESS).mkdir()
    pane = site.run(RAN)

    assert pane.ended() == 126
    assert not site.saw("ran")


# --- facts ------------------------------------------------------------------------------------------


def _facts_of(pid: int, start: int, boot_id: str) -> program_facts.Process:
    return program_facts.Process(pid, start, pid, start, boot_id, 0, "x", OPERATION)


def test_a_recycled_pid_or_another_boot_is_not_the_process() -> None:
    me = os.getpid()
    start = processes.start_of(me)
    assert start is not None

    assert program_facts.alive(_facts_of(me, start, processes.boot_id()))
    assert not program_facts.alive(_facts_of(me, start + 1, processes.boot_id()))
    assert not program_facts.alive(_facts_of(me, start, "another boot"))
    assert not program_facts.alive(_facts_of(me, start, processes.boot_id()), boot_id="another boot")
    assert not program_facts.supervised(_facts_of(me, start - 1, processes.boot_id()))
    assert not program_facts.alive(_facts_of(0, start, processes.boot_id()))
    assert not program_facts.alive(_facts_of(-1, start, processes.boot_id()))


def test_a_process_of_which_only_the_status_is_left_is_not_alive() -> None:
    with subprocess.Popen(["true"]) as ended:
        wait_for(lambda: processes.start_of(ended.pid) is None, "the process to end")
        assert processes.look(ended.pid) is not None


def test_a_program_says_how_it_is(tmp_path: Path) -> None:
    program_facts.write_state(tmp_path, "waiting", "Deploy\x1b]0;x\x07\nnow? " + "y" * 1000)

    said = program_facts.read_state(tmp_path)

    assert said is not None
    assert (said.state, said.pid) == ("waiting", os.getpid())
    assert said.detail.startswith("Deploy ]0;x now? yyy")
    assert said.detail.isprintable()
    assert len(said.detail) == 300
    assert os.listdir(tmp_path) == ["state.json"]
    assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"schema": 2, "state": "idle", "detail": "", "at_ms": 1, "pid": 1}',
        '{"schema": 1, "state": "happy", "detail": "", "at_ms": 1, "pid": 1}',
        '{"schema": 1, "state": "idle", "detail": 5, "at_ms": 1, "pid": 1}',
        '{"schema": 1, "state": "idle", "detail": "", "at_ms": true, "pid": 1}',
        '{"schema": 1, "state": "idle", "detail": "", "at_ms": 1}',
        '{"schema": 1, "state": "idle", "detail": "' + "x" * 70_000 + '", "at_ms": 1, "pid": 1}',
        "[" * 5000,
    ],
    ids=range(11),
)
def test_what_is_not_a_state_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)

    assert program_facts.read_state(tmp_path) is None


def test_facts_are_not_read_through_links_or_pipes(tmp_path: Path) -> None:
    program_facts.write_state(tmp_path, "idle")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "state.json").symlink_to(tmp_path / "state.json")
    os.mkfifo(tmp_path / "linked" / "exit.json")

    assert program_facts.read_state(tmp_path / "linked") is None
    assert program_facts.read_exit(tmp_path / "linked") is None
    assert program_facts.read_process(tmp_path / "linked") is None


# --- speed and what is loaded -------------------------------------------------------------------------


def _cost(argv: list[str]) -> float:
    """Return the processor time of a run: it waits for nothing, and other work on the machine does not count."""
    started = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def test_the_launcher_starts_quickly(site: Site) -> None:
    """From nothing to having looked for its launch file; the best of five."""
    python = [sys.executable, "-I", "-S"]
    runs = [(_cost([*python, "-c", "pass"]), _cost([*python, LAUNCHER, str(site.file)])) for _ in range(5)]

    assert min(launch for _, launch in runs) < 3 * min(bare for bare, _ in runs) + 0.020


def test_the_launcher_loads_nothing_of_swarm_but_itself(site: Site) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", LAUNCHER, str(site.file)],
        capture_output=True,
        check=False,
    )

    assert done.returncode == 3
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    ours = {name for name in loaded if name.startswith("swarm.")}
    assert {name.split(".")[1] for name in ours} == {"machine", "supervisor"}
    assert len(ours) <= 23, sorted(ours)
    assert loaded.isdisjoint({"typing", "dataclasses", "pathlib", "subprocess", "site"})
