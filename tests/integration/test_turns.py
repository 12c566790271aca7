"""Messages on their way into a program's turn, when the process that brings them is killed."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from swarm.pane import proc
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

AGENT, ADDRESS = "developer", "developer@fx"
#: Together more than a pipe takes without a reader.
BODIES = [f"{number} " + "x" * 19_000 for number in range(5)]


def deliver(panes: PaneLab, out: Path) -> int:
    """Begin to wait for messages below the agent's program, as its hook does; return the pid."""
    number = out.with_suffix(".pid")
    panes.type(AGENT, f"echo '{{}}' | {sys.executable} -P -m swarm hook deliver 2> {out} & echo $! > {number}")
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
        bus = swarm.post.bus
        wait_for(lambda: bus.claims(ADDRESS), "the claim", 90)

        os.kill(waiter, signal.SIGKILL)
        wait_for(lambda: proc.start_of(waiter) is None, "the end of the waiter")
    finally:
        os.close(unread)

    assert bus.claims(ADDRESS) == ()
    assert "agents.nudge" in swarm.nudge(AGENT, "fx"), "it would be told of them again"
    waiter = deliver(panes, free)
    wait_for(lambda: free.exists() and "[swarm] end of messages" in free.read_text(), "the messages", 90)
    wait_for(lambda: proc.start_of(waiter) is None, "the end of the second waiter", 90)
    text = free.read_text()
    assert all(body in text for body in BODIES)
    assert bus.claims(ADDRESS), "they are in the program's hands now"
    assert swarm.nudge(AGENT, "fx") == "nothing waits"
