"""What an agent's program has put up for every session of its user lives on when the agent ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import WorkAtRisk
from swarm.machine import processes
from swarm.programs.codex import served
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

#: Puts up a service, which has a worker, and something that is only its own; the first argument is how it is noted.
PROGRAM = """\
#!/usr/bin/env python3
import json, os, subprocess, sys, time
from pathlib import Path

def begin(*argv):
    started = subprocess.Popen(argv, start_new_session=True)
    ticks = Path(f"/proc/{started.pid}/stat").read_text().rpartition(")")[2].split()[19]
    return started.pid, ticks

service, ticks = begin("sh", "-c", "sleep 600; true")
mine, _ = begin("sleep", "601")
records = {
    "claude": (".claude/daemon.lock", {"pid": service, "procStart": ticks}),
    "worker": (".claude/daemon/roster.json", {"workers": {"1f7f1cb7": {"pid": service, "procStart": ticks}}}),
    "codex": (".codex/app-server-daemon/daemon.pid", {"pid": service, "processIdentity": {"startTicks": int(ticks)}}),
    "older codex": (
        ".codex/app-server-daemon/app-server.pid",
        {"pid": service, "processIdentity": {"startTicks": int(ticks)}},
    ),
    "other": (".claude/daemon.lock", {"pid": service, "procStart": "1"}),
}
name, record = records[sys.argv[1]]
path = Path.home() / name
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(json.dumps(record))
Path("../../pids").write_text(f"{service} {mine}")
time.sleep(600)
"""


def started(panes: PaneLab, kind: str) -> tuple[int, int]:
    """Start an agent with such a program; return the service, and what is only the agent's."""
    program = panes.program("serving", PROGRAM)
    panes.swarm.start("fx", "developer", command=f"{program} '{kind}'")
    note = panes.root / "pids"
    wait_for(note.exists, "the service")
    wait_for(lambda: len(note.read_text().split()) == 2, "both pids")
    service, mine = map(int, note.read_text().split())
    return service, mine


@pytest.mark.parametrize("kind", ["claude", "worker", "codex", "older codex"])
def test_a_service_for_other_sessions_outlives_stop_and_cleanup(panes: PaneLab, kind: str) -> None:
    service, mine = started(panes, kind)
    below = [one.pid for one in processes.below(service)]
    report = panes.swarm.stop(["fx"])
    try:
        assert report.survivors == ()
        assert panes.gone(mine)
        assert panes.state("developer") == "stopped"
        assert not any(panes.gone(pid) for pid in (service, *below))
        panes.swarm.cleanup(["fx"], force=True)
        assert not any(panes.gone(pid) for pid in (service, *below))
    finally:
        os.killpg(service, signal.SIGKILL)


def test_it_lives_on_too_when_the_supervisor_was_killed(panes: PaneLab) -> None:
    service, mine = started(panes, "claude")
    os.kill(panes.note("developer", "process.json")["supervisor_pid"], signal.SIGKILL)
    panes.swarm.stop(["fx"])
    try:
        assert panes.gone(mine)
        assert not panes.gone(service)
    finally:
        os.killpg(service, signal.SIGKILL)


def test_a_stale_note_about_another_process_keeps_nothing_alive(panes: PaneLab) -> None:
    service, mine = started(panes, "other")
    panes.swarm.stop(["fx"])
    assert panes.gone(mine)
    assert panes.gone(service)


#: Leaves behind a session of its service, which has died, and something of its own; both are the supervisor's now.
ORPHANS = """\
#!/usr/bin/env python3
import os, subprocess, sys, time
from pathlib import Path

def leave(**more):
    argv = ["sh", "-c", "setsid sleep 602 >/dev/null & echo $!"]
    return int(subprocess.check_output(argv, env={**os.environ, **more}))

Path("../../pids").write_text(f"{leave(CLAUDE_JOB_DIR='/jobs/1f7f1cb7')} {leave()}")
time.sleep(600)
"""


@pytest.mark.parametrize("supervised", [True, False])
def test_an_orphaned_background_session_lives_on_and_what_is_the_agents_own_ends(
    panes: PaneLab, *, supervised: bool
) -> None:
    """The agent itself was started from another background session."""
    panes.env["CLAUDE_JOB_DIR"] = "/jobs/0a0b0c0d"
    program = panes.program("leaving", ORPHANS)
    panes.swarm.start("fx", "developer", command=str(program))
    note = panes.root / "pids"
    wait_for(lambda: note.exists() and len(note.read_text().split()) == 2, "both orphans")
    session, mine = map(int, note.read_text().split())
    above = panes.note("developer", "process.json")["supervisor_pid"]
    wait_for(lambda: [one.pid for one in processes.below(above)].count(session) == 1, "its new parent")
    if not supervised:
        os.kill(above, signal.SIGKILL)
    try:
        assert panes.swarm.stop(["fx"]).survivors == ()
        assert panes.gone(mine)
        assert not panes.gone(session)
        panes.swarm.cleanup(["fx"], force=True)
        assert not panes.gone(session)
    finally:
        os.kill(session, signal.SIGKILL)


#: Leaves behind what Codex's service was doing when it died: for others, for the agent, and for a codex of the agent's.
COMMANDS = """\
#!/usr/bin/env python3
import os, subprocess, time
from pathlib import Path

def leave(thread):
    argv = ["sh", "-c", "setsid sleep 603 >/dev/null & echo $!"]
    return subprocess.check_output(argv, env={**os.environ, "CODEX_THREAD_ID": thread}, text=True).strip()

Path("../../pids").write_text(" ".join(map(leave, ["of-others", "of-the-agent", "begun-by-it", "unknown"])))
time.sleep(600)
"""


@pytest.mark.parametrize("supervised", [True, False])
def test_what_a_dead_service_did_for_others_lives_on_and_what_it_did_for_the_agent_ends(
    panes: PaneLab, *, supervised: bool
) -> None:
    program = panes.program("leaving", COMMANDS)
    home, tree = Path(panes.env["HOME"]), panes.tree("developer", "fx")
    conversation(home, "of-others", panes.root, "vscode")
    conversation(home, "of-the-agent", tree / "src", "vscode")
    conversation(home, "begun-by-it", panes.root, "exec")
    panes.swarm.start("fx", "developer", command=str(program))
    note = panes.root / "pids"
    wait_for(lambda: note.exists() and len(note.read_text().split()) == 4, "the commands")
    theirs, *mine = map(int, note.read_text().split())
    above = panes.note("developer", "process.json")["supervisor_pid"]
    wait_for(lambda: [one.pid for one in processes.below(above)].count(theirs) == 1, "its new parent")
    if not supervised:
        os.kill(above, signal.SIGKILL)
    try:
        assert panes.swarm.stop(["fx"]).survivors == ()
        assert all(panes.gone(pid) for pid in mine)
        assert not panes.gone(theirs)
    finally:
        os.kill(theirs, signal.SIGKILL)


def test_stop_names_what_the_users_own_service_left_of_the_agents_conversation(panes: PaneLab) -> None:
    panes.program("codex", "#!/bin/sh\nsleep 600\n")
    panes.start("developer", program="codex", task="")
    home, tree = Path(panes.env["HOME"]), panes.tree("developer", "fx")
    talk = conversation(home, "talk", tree, "vscode")
    conversation(home, "other", panes.root, "vscode")
    left, other = (
        subprocess.Popen(["sleep", "604"], env={"HOME": str(home), "CODEX_THREAD_ID": name})
        for name in ("talk", "other")
    )
    user = holding(talk)  # opened it in a terminal of their own
    try:
        panes.until("developer", "working", "idle", "unknown")
        assert panes.swarm.stop(["fx"]).survivors == ()
        user.kill()
        user.wait()
        panes.swarm.resume(["fx"])
        panes.until("developer", "working", "idle", "unknown")
        (named,) = panes.swarm.stop(["fx"]).survivors
        assert named.startswith(f"sleep, process {left.pid}, which Codex's own service left behind")
        assert left.poll() is None
        assert other.poll() is None
    finally:
        for one in (left, other, user):
            one.kill()
            one.wait()


#: Codex's service, or a program beside it: holds conversations open.
HOLDER = "import sys, time; held = [open(name) for name in sys.argv[1:]]; print('held', flush=True); time.sleep(600)"


def holding(*paths: Path) -> subprocess.Popen[bytes]:
    """Start a process that has files open."""
    started = subprocess.Popen([sys.executable, "-c", HOLDER, *map(str, paths)], stdout=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stdout.readline() == b"held\n"
    started.stdout.close()
    return started


def conversation(home: Path, name: str, cwd: Path, source: str = "cli") -> Path:
    path = home / f".codex/sessions/2026/11/19/rollout-2026-11-19-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "session_meta", "payload": {"cwd": str(cwd), "source": source}}) + "\n")
    return path


def note_service(home: Path, pid: int) -> None:
    """Write down a process as Codex writes its service down."""
    note = home / ".codex/app-server-daemon/daemon.pid"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"pid": pid, "processIdentity": {"startTicks": processes.start_of(pid)}}))


def test_a_conversation_that_codex_own_service_holds_is_not_lost_from_sight(panes: PaneLab) -> None:
    panes.program("codex", "#!/bin/sh\nsleep 600\n")
    panes.start("developer", program="codex", task="")
    home = Path(panes.env["HOME"])
    other = conversation(home, "other", panes.root)
    talk = conversation(home, "talk", panes.tree("developer", "fx"))
    service = holding(other, talk)
    try:
        assert "service" not in panes.one("developer").status.detail
        note_service(home, service.pid)
        found = panes.until("developer", "unknown")
        assert f"goes on in Codex's own service, process {service.pid}" in found.status.detail

        report = panes.swarm.stop(["fx"])
        assert "the conversation of developer in Codex's own service" in report.survivors[0]
        assert panes.gone(found.pid)
        assert service.poll() is None
        assert panes.state("developer") == "unknown"
        assert panes.swarm.resume(["fx"]).started == ()

        with pytest.raises(WorkAtRisk, match="its conversation goes on in Codex's own service") as refused:
            panes.swarm.cleanup(["fx"])
        assert "--force" in str(refused.value.hint)
        assert panes.tree("developer", "fx").is_dir()
        told = panes.swarm.cleanup(["fx"], force=True).warnings
        assert any("its worktree is gone, but its conversation goes on in Codex's own service" in line for line in told)
        assert service.poll() is None
    finally:
        service.kill()
        service.wait()


def test_one_that_the_agents_own_program_holds_is_where_it_should_be(tmp_path: Path) -> None:
    """Its user talks to a Codex of their own in the same worktree."""
    talk, mine = conversation(tmp_path, "talk", tmp_path), conversation(tmp_path, "mine", tmp_path)
    service, program, elsewhere = holding(talk), holding(mine), holding()
    try:
        note_service(tmp_path, service.pid)
        home = str(tmp_path / ".codex")
        assert served.by(home, str(tmp_path), program.pid) == 0
        assert served.by(home, str(tmp_path), elsewhere.pid) == service.pid
        assert served.by(home, str(tmp_path), 0) == service.pid
        assert served.by(home, str(tmp_path / "x"), 0) == 0
    finally:
        for one in (service, program, elsewhere):
            one.kill()
            one.wait()
    assert served.by(home, str(tmp_path), 0) == 0
