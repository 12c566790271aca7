"""Messages on their way into a program's turn, when the process that brings them is killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.delivery.framing import mark
from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.programs.reading import notes
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

AGENT, ADDRESS = "developer", "developer@fx"
#: Together more than a pipe takes without a reader.
BODIES = [f"{number} " + "x" * 19_000 for number in range(5)]


def deliver(panes: PaneLab, out: Path, **event: str) -> int:
    """Begin to wait for messages below the agent's program, as its hook does; return the pid."""
    number = out.with_suffix(".pid")
    panes.type(
        AGENT, f"echo '{json.dumps(event)}' | {sys.executable} -P -m swarm hook deliver 2> {out} & echo $! > {number}"
    )
    wait_for(lambda: number.exists() and number.read_text().strip(), "the pid of the waiter")
    return int(number.read_text())


def test_what_a_killed_waiter_had_claimed_waits_again_at_once(panes: PaneLab, tmp_path: Path) -> None:
    """It has printed half of it, so the program has not heard it."""
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    swarm = panes.start(AGENT, program="shell")
    panes.until(AGENT, "idle")
    blocked, free = tmp_path / "blocked", tmp_path / "free"
    os.mkfifo(blocked)
    unread = os.open(blocked, os.O_RDONLY | os.O_NONBLOCK)
    for body in BODIES:
        swarm.send(ADDRESS, body)
    try:
        waiter = deliver(panes, blocked)
        bus = swarm.messages._post.bus
        wait_for(lambda: bus.claims(ADDRESS), "the claim", 90)

        os.kill(waiter, signal.SIGKILL)
        wait_for(lambda: processes.start_of(waiter) is None, "the end of the waiter")
    finally:
        os.close(unread)

    assert bus.claims(ADDRESS) == ()
    assert "agents.nudge" in swarm.delivery.nudge(AGENT, "fx"), "it would be told of them again"
    waiter = deliver(panes, free)
    wait_for(lambda: free.exists() and "[swarm] end of messages" in free.read_text(), "the messages", 90)
    wait_for(lambda: processes.start_of(waiter) is None, "the end of the second waiter", 90)
    text = free.read_text()
    assert all(body in text for body in BODIES)
    assert bus.claims(ADDRESS), "they are in the program's hands now"
    assert swarm.delivery.nudge(AGENT, "fx") == "it has messages in hand"


def idle_for_long(panes: PaneLab, folder: Path) -> None:
    """Let the agent's program be one that says it has been idle since before it was given anything."""
    pid = panes.one(AGENT).pid
    (folder / "sessions").mkdir()
    said = {"pid": pid, "status": "idle", "statusUpdatedAt": 1}
    (folder / "sessions" / f"{pid}.json").write_text(json.dumps(said))
    (panes.run(AGENT) / notes.FILE).write_text(notes.note("claude", config=str(folder))[notes.FILE])
    process = panes.note(AGENT, runfiles.PROCESS)
    runfiles.write(str(panes.run(AGENT)), runfiles.PROCESS, {**process, "started_ms": 1})


@pytest.mark.parametrize("watched", [True, False])
def test_what_an_idle_program_dropped_waits_again_and_what_stands_in_its_queue_does_not(
    panes: PaneLab, tmp_path: Path, *, watched: bool
) -> None:
    """Whether the next one that waits sees it, or, when nobody does, the supervisor's look at the inbox."""
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    swarm = panes.start(AGENT, program="shell")
    panes.until(AGENT, "idle")
    (sent,) = swarm.send(ADDRESS, "are you there?")
    record = tmp_path / "record.jsonl"
    record.write_text("")
    first = tmp_path / "first"
    waiter = deliver(panes, first, transcript_path=str(record))
    wait_for(lambda: first.exists() and "are you there?" in first.read_text(), "the message", 90)
    wait_for(lambda: processes.start_of(waiter) is None, "the end of the waiter", 90)
    bus = swarm.messages._post.bus
    assert swarm.delivery.nudge(AGENT, "fx") == "it has messages in hand"

    given = panes.note(AGENT, runfiles.GIVEN)
    runfiles.write(str(panes.run(AGENT)), runfiles.GIVEN, {**given, "at_ms": given["at_ms"] - 60_000})
    assert swarm.delivery.nudge(AGENT, "fx") == "it has messages in hand"  # it may be at work: it does not tell
    record.write_text(json.dumps({"type": "queue-operation", "operation": "enqueue", "content": mark(sent.id)}) + "\n")
    idle_for_long(panes, tmp_path)
    assert swarm.delivery.nudge(AGENT, "fx") == "it has messages in hand"
    record.write_text("")

    if watched:
        second = tmp_path / "second"
        deliver(panes, second, transcript_path=str(record))
        wait_for(lambda: second.exists() and "are you there?" in second.read_text(), "the message once more", 120)
    else:
        assert "agents.nudge" in swarm.delivery.nudge(AGENT, "fx"), "it would be told of it again"
        assert bus.claims(ADDRESS) == ()
        assert swarm.messages.get(sent.id)[0].stored.state == "queued"
    assert "returned" in [event.name for event in swarm.messages.get(sent.id)[0].events]
