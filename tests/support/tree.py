"""A lab with leads and workers; tests act for them as a server does that sees their processes."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm import SwarmError
from swarm.bus.errors import InboxNotFound
from swarm.bus.filebus import FileBus
from swarm.machine import processes
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm import Spawned, Swarm
    from swarm.bus.message import Message
    from swarm.testing.panes import PaneLab

SWARM = f"{shlex.quote(sys.executable)} -P -m swarm"
#: Stays, and does nothing.
WAIT = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")


def quiet(lab: PaneLab) -> PaneLab:
    """Return a lab in whose panes nobody types by himself, and agents may spawn as fast as a test does."""
    lab.env["SWARM_AGENTS_NUDGE"] = "never"
    lab.env["SWARM_TREE_SPAWNS_PER_MINUTE"] = "0"
    return lab


def as_agent(lab: PaneLab, agent: str, session: str, **flags: Any) -> Swarm:
    """Return swarm as an agent uses it."""
    known = process(lab, agent, session)
    pid = int(known["pid"])
    wait_for(lambda: known.get("boxed") or has_begun(pid), f"the program of {agent}@{session} to begin")
    return lab.open(**flags).tree.acting_for(pid)


def has_begun(pid: int) -> bool:
    """Whether a program is its own: before, its process has the environment of its supervisor. One that ended has."""
    data = processes.environment(pid)
    return not data or b"\0SWARM_ACTOR=" in b"\0" + data


def process(lab: PaneLab, agent: str, session: str) -> dict[str, Any]:
    """Wait for an agent's program, and return what is known of its process."""
    wait_for((lab.run(agent, session) / "process.json").exists, f"the program of {agent}@{session}")
    return lab.note(agent, "process.json", session)


def subtree(lab: PaneLab, slug: str = "auth", by: Swarm | None = None, **options: Any) -> Spawned:
    """Spawn a lead that is a program which waits."""
    options = {"command": WAIT, **options}
    made = (by or lab.swarm).tree.spawn_subtree(options.pop("task", f"do {slug}"), slug, **options)
    process(lab, made.agent.name, made.agent.session)
    return made


def worker(lab: PaneLab, name: str = "tests", by: Swarm | None = None, **options: Any) -> Spawned:
    """Spawn a worker that is a program which waits."""
    options = {"command": WAIT, **options}
    made = (by or lab.swarm).tree.spawn_worker(name, options.pop("task", f"do {name}"), **options)
    process(lab, made.agent.name, made.agent.session)
    return made


def end(lab: PaneLab, agent: str, session: str, how: int = signal.SIGKILL) -> None:
    """End an agent's program."""
    os.kill(int(process(lab, agent, session)["pid"]), how)


def mail(lab: PaneLab, address: str, limit: int = 2000) -> list[Message]:
    """Return what came into a box, and was taken or not."""
    bus = FileBus(lab.root / ".swarm" / "messages")
    try:
        return [one.message for one in bus.history(address, limit)]
    except InboxNotFound:
        return []
    finally:
        bus.close()


def told(lab: PaneLab, owner: str) -> list[tuple[str, str, str]]:
    """Return the events in a queue: kind, worker, status; the ends of turns are left out."""
    found = [one.metadata for one in mail(lab, f"events.{owner}") if one.type != "agent-idle"]
    return [(one["kind"], one["worker"], one["status"]) for one in found]


def code_of(act: Callable[[], object]) -> str:
    """Expect a refusal, and return its code."""
    with pytest.raises(SwarmError) as raised:
        act()
    return raised.value.code
