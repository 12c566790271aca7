"""What an agent's program has put up for every session of its user lives on when the agent ends."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from swarm.machine import processes
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
    "codex": (
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
    panes.swarm.start("fx", "developer", command=f"{program} {kind}")
    note = panes.root / "pids"
    wait_for(note.exists, "the service")
    wait_for(lambda: len(note.read_text().split()) == 2, "both pids")
    service, mine = map(int, note.read_text().split())
    return service, mine


@pytest.mark.parametrize("kind", ["claude", "worker", "codex"])
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
