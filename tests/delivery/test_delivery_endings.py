"""An agent's end reaches the user's inbox with its cause, once, whatever was killed; and what idle agents are told."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import chores
from swarm.agents import endings
from swarm.bus.errors import InboxNotFound
from swarm.bus.filebus import FileBus
from swarm.machine import processes
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.bus.message import Message

pytestmark = pytest.mark.integration

AGENT = "developer"
SOON = 60.0


def told(lab: PaneLab, address: str = "user", kind: str = endings.ENDED) -> list[Message]:
    """Return what came into an inbox."""
    bus = FileBus(lab.root / ".swarm" / "messages")
    try:
        return [one.message for one in bus.history(address) if one.message.type == kind]
    except InboxNotFound:
        return []
    finally:
        bus.close()


def subjects(lab: PaneLab) -> list[str]:
    """Return the ends that the user was told of."""
    return [message.subject for message in told(lab)]


def start(lab: PaneLab, roles: str = AGENT, task: str = QUICK) -> None:
    lab.start(roles, task=task)
    lab.all_until("idle")


# --- ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "subject"),
    [
        ("exit", "developer@fx is done: ended by itself"),
        ("fail 3", "developer@fx is failed: exit status 3"),
        ("crash", "developer@fx is failed: killed by signal 9"),
    ],
)
def test_an_end_is_told_with_its_cause(panes: PaneLab, order: str, subject: str) -> None:
    start(panes)

    panes.type(AGENT, order)

    wait_for(lambda: subjects(panes), "the notice", SOON)
    (message,) = told(panes)
    assert message.subject == subject
    assert message.sender == "swarm"
    assert "`swarm restart developer@fx`" in message.body
    assert "`swarm restore fx/developer`" in message.body
    assert message.metadata["agent"] == AGENT


def test_an_agent_that_is_stopped_is_told_once_whoever_looks(panes: PaneLab) -> None:
    start(panes, "developer,reviewer")

    panes.swarm.stop(["fx"])
    for _ in range(2):
        panes.swarm.delivery.report_endings()
        assert chores.main([str(panes.root), "label"]) == 0

    assert sorted(subjects(panes)) == [
        "developer@fx is stopped: stopped by swarm",
        "reviewer@fx is stopped: stopped by swarm",
    ]


def test_the_notice_is_there_when_the_record_of_it_was_lost(panes: PaneLab) -> None:
    start(panes)
    panes.swarm.stop(["fx"])
    panes.only()  # those who look by themselves have done so
    (panes.run(AGENT) / "told.json").unlink()

    assert panes.swarm.delivery.report_endings() == 1

    assert len(subjects(panes)) == 1


def test_a_session_that_cannot_be_read_keeps_no_other_from_being_told(panes: PaneLab) -> None:
    start(panes)
    panes.swarm.create("aa", "developer")
    panes.swarm.stop(["fx"])
    panes.only()
    (panes.run(AGENT) / "told.json").unlink()
    (panes.root / ".swarm/sessions/aa/session.json").write_text("{")

    assert panes.swarm.delivery.report_endings() == 1


def test_an_end_with_its_supervisor_is_told_by_the_next_change(panes: PaneLab) -> None:
    start(panes)
    facts = panes.note(AGENT, "process.json")
    panes.only(facts["supervisor_pid"], facts["pid"])  # whoever it had sent to look shall not see the end
    os.kill(facts["supervisor_pid"], signal.SIGKILL)  # nor it itself; tmux would let go on what was only stopped
    processes.send(facts["pid"], facts["pid_start"], signal.SIGKILL)
    pids = (facts["supervisor_pid"], facts["pid"])
    wait_for(lambda: not any(processes.start_of(one) for one in pids), "the end of both")

    panes.swarm.status()
    assert subjects(panes) == []  # looking writes nothing

    panes.swarm.resume(["fx"])
    panes.all_until("idle")
    assert subjects(panes) == ["developer@fx is failed: its process ended without a record"]


def test_each_run_has_an_end_of_its_own(panes: PaneLab) -> None:
    start(panes)
    for count in (1, 2):
        panes.type(AGENT, "fail 3")

        def told(wanted: int = count) -> bool:
            return len(subjects(panes)) == wanted

        wait_for(told, "the notice", SOON)
        panes.until(AGENT, "failed")
        panes.swarm.resume(["fx"])
        panes.until(AGENT, "idle")

    assert len(subjects(panes)) == 2


def test_agents_that_are_cleaned_up_while_they_run_are_told(panes: PaneLab) -> None:
    start(panes, "developer,reviewer")

    panes.swarm.cleanup(["fx"], force=True)

    assert sorted(subjects(panes)) == [
        "developer@fx is stopped: stopped by swarm",
        "reviewer@fx is stopped: stopped by swarm",
    ]
    for message in told(panes):  # what the notice proposes works: brought back, it can be asked about and started
        again = re.search("`swarm (restore [^`]*)`", message.body)
        assert again is not None
        for proposed in (again[1], f"why {message.metadata['agent']}@fx"):
            done = panes.cli(*proposed.split())
            assert done.returncode == 0, done


def test_many_that_end_at_once_are_all_told(panes: PaneLab) -> None:
    start(panes, "developer:8")
    for number in range(1, 9):
        panes.type(f"developer-{number}", "fail 7")

    wait_for(lambda: len(subjects(panes)) == 8, f"eight notices: {subjects(panes)}", SOON)
    assert len(set(subjects(panes))) == 8


# --- the heartbeat ----------------------------------------------------------------------------------------


def heart(lab: PaneLab, condition: str = "", timeout: str = "1s") -> None:
    """Give the lab a role with a heartbeat."""
    text = f"name: {AGENT}\ninstructions: Work.\nheartbeat:\n  idle_timeout: {timeout}\n  message: Anything new?\n"
    lab.write({f"roles/{AGENT}.yaml": text + (f"  condition: {condition}\n" if condition else "")})


def beats(lab: PaneLab) -> list[Message]:
    return told(lab, f"{AGENT}@fx", "heartbeat")


def waits(pid: int) -> int:
    """Return how often a process has waited for something: one that looks around now and then does so each time."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def test_an_agent_that_is_idle_for_long_is_told_once(panes: PaneLab) -> None:
    heart(panes)
    panes.start(AGENT, task=QUICK, program="shell")
    panes.until(AGENT, "idle")

    wait_for(lambda: beats(panes), "the message", SOON)

    (message,) = beats(panes)
    assert (message.sender, message.body) == ("swarm", "Anything new?")
    go, supervisor = panes.root.parent / "go", panes.note(AGENT, "process.json")["supervisor_pid"]
    os.mkfifo(go)
    panes.type(AGENT, f"cat '{go}'")
    panes.until(AGENT, "working")
    before = waits(supervisor)
    wait_for(lambda: waits(supervisor) > before + 2, "the supervisor to look again", SOON)
    go.write_text("go\n")
    wait_for(lambda: len(beats(panes)) == 2, "the next time of idleness", SOON)


def test_the_condition_runs_in_the_worktree_with_the_agents_environment(panes: PaneLab) -> None:
    heart(panes, condition='test -e ready && echo "$PWD $SWARM_ACTOR" >>"$HOME/asked"')
    panes.start(AGENT, task=QUICK, program="shell")
    panes.until(AGENT, "idle")
    asked: Path = panes.root.parent / "home" / "asked"
    assert beats(panes) == []

    (panes.tree(AGENT, "fx") / "ready").touch()

    wait_for(lambda: beats(panes), "the message", SOON)
    assert asked.read_text() == f"{panes.tree(AGENT, 'fx')} {AGENT}\n"


def test_an_agent_at_work_has_no_heartbeat(panes: PaneLab) -> None:
    heart(panes, timeout="1s")
    panes.start(AGENT, task="demo: steps 0\ndemo: sleep 4\n")
    panes.until(AGENT, "working")

    idle = panes.until(AGENT, "idle").status

    wait_for(lambda: beats(panes), "the message", SOON)
    (message,) = beats(panes)
    assert message.time_ms >= idle.since_ms + 1000
