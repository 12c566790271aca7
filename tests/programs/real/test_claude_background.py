"""Claude Code's own background sessions: an agent has none; where its role allows them swarm tells the truth."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from swarm.machine import processes as proc
from swarm.testing.api import say
from swarm.testing.terminal import wait_for
from tests.support.agents import DEADLINE

if TYPE_CHECKING:
    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


def service(claude: ClaudeLab) -> int:
    """Return the pid of Claude Code's own service; 0 when it has put up none."""
    with suppress(OSError, ValueError):
        return int(json.loads((claude.home / ".claude/daemon.lock").read_text())["pid"])
    return 0


def test_an_agent_stays_in_its_pane_and_is_offered_no_way_round_the_bus(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.")
    claude.api.script("say hello", say("Hello there."), say("Still here."))
    claude.begin("claude", "builder", "say hello")
    claude.shows("builder", "Hello there.")
    claude.until("builder", "idle")
    assert not {"SendMessage", "ListAgents"} & set(claude.api.heard("say hello").tools)

    claude.keys("builder", "Left")
    claude.type("builder", "/bg")
    claude.say("builder", "are you there?")
    claude.shows("builder", "Still here.")

    assert claude.until("builder", "idle").status.runs
    assert service(claude) == 0


def test_where_a_role_allows_it_the_conversation_is_not_lost_from_sight(claude: ClaudeLab) -> None:
    claude.role("builder", "You build.", settings={"disableAgentView": False})
    claude.api.script("say hello", say("Hello there."))
    claude.begin("claude", "builder", "say hello")
    claude.shows("builder", "Hello there.")
    claude.until("builder", "idle")

    claude.keys("builder", "Left")
    found = claude.until("builder", "unknown")
    assert "background session" in found.status.detail
    below = service(claude)
    try:
        report = claude.swarm.stop(["fx"])
        assert "the conversation of builder in background session" in report.survivors[0]
        assert proc.start_of(found.pid) is None
        assert proc.start_of(below) is not None
        assert claude.state("builder") == "unknown"
        assert claude.swarm.resume(["fx"]).started == ()
    finally:
        processes = [below, *(one.pid for one in proc.below(below))]
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: claude.state("builder") == "stopped", "the end of the conversation", DEADLINE)
