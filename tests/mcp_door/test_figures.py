"""What the door costs: memory of doors and server, and the time of a call and of an event (run with -s to see them)."""

from __future__ import annotations

import json
import statistics
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Door, Puppets

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
DOORS = 16


def show(text: str) -> None:
    """Print a figure, for who runs this with -s."""
    sys.stdout.write(f"\n{text}")


def pss(pid: int) -> float:
    """Return a process's share of the memory, in megabytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def timed(door: Door, tool: str, count: int) -> list[float]:
    """Return how long calls took, in milliseconds."""
    found = []
    for _ in range(count):
        began = time.monotonic()
        door.call(tool)
        found.append((time.monotonic() - began) * 1000)
    return found


def test_sixteen_doors_and_a_server(puppets: Puppets, server: Serving) -> None:
    """Memory is judged, whatever else the machine does; times are shown."""
    server.start()
    assert server.process is not None
    with ExitStack() as stack:
        ready, doors = [], []
        for number in range(DOORS):
            began = time.monotonic()
            door = stack.enter_context(puppets.door(("developer@fx", "reviewer@fx")[number % 2]))
            door.hello()
            door.tools()
            ready.append((time.monotonic() - began) * 1000)
            doors.append(door)
        calls = timed(doors[0], "inbox_ack", 20)
        shares = [pss(door.process.pid) for door in doors]
        whole = pss(server.process.pid)
    total = sum(shares) + whole
    show(f"server {whole:.1f} MB, a door {max(shares):.2f} MB, together {total:.1f} MB")
    show(f"door ready: first {ready[0]:.0f} ms, then {statistics.median(ready[1:]):.0f} ms (median)")
    show(f"a call: {statistics.median(calls):.1f} ms (median)")
    assert max(shares) <= 6.0
    assert total <= 162  # the figure is 150; since the server follows the project, too, it is some 155


def test_a_completion_is_an_event_at_once(puppets: Puppets, server: Serving) -> None:
    words = {"name": "worker", "description": "a role of the test", "instructions": "You help."}
    puppets.lab.write({"roles/worker.yaml": json.dumps({**words, "command": [str(puppets.program)]})})
    server.start()
    took = []
    with puppets.door("developer@fx") as lead:
        lead.hello()
        cursor = lead.call("wait_for_event", timeout_seconds=0)["cursor"]
        notes = puppets.lab.root / ".swarm/sessions/fx/run/developer"
        for number in range(3):
            made = lead.call("spawn_worker", name=f"helper-{number}", prompt="help", timeout=120)
            with puppets.door(made["agent"]["address"]) as child:
                child.hello()
                wait = {"timeout_seconds": 60, "after": cursor, "kinds": ["WorkerComplete"]}
                waiting = lead.begin("tools/call", {"name": "wait_for_event", "arguments": wait})
                wait_for(lambda: any(notes.glob("wait-*.json")), "the lead to wait")
                told = child.begin(
                    "tools/call", {"name": "notify_parent", "arguments": {"status": "success", "message": "x"}}
                )
                child.answer(told)
                said = time.monotonic()
                found = lead.answer(waiting)["structuredContent"]
                took.append((time.monotonic() - said) * 1000)
                assert found["event"]["worker"] == made["agent"]["address"]
                cursor = found["cursor"]
    show(f"from the answer to notify_parent to the answer of wait_for_event: {[round(one) for one in took]} ms")
