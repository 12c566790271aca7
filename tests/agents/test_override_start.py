"""A start that changes its roles: what runs, what is remembered, and what starts nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError
from swarm.testing.panes import QUICK
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_a_program_and_a_heartbeat_of_one_agent_last_over_a_resume(panes: PaneLab) -> None:
    team = panes.swarm.start(
        "fx",
        "developer,reviewer",
        task=QUICK,
        overrides={
            "agent_type": "demo",
            "reviewer:heartbeat.idle_timeout": "1s",
            "reviewer:heartbeat.message": "Still there?",
        },
    )

    assert {agent.name for agent in team.agents} == {"developer", "reviewer"}
    record = json.loads((panes.root / ".swarm" / "sessions" / "fx" / "session.json").read_text())
    assert [one["program"] for one in record["agents"]] == ["demo", "demo"]
    assert record["agents"][0]["overrides"] == {"agent_type": "demo"}
    assert record["agents"][1]["overrides"] == {
        "agent_type": "demo",
        "heartbeat.idle_timeout": "1s",
        "heartbeat.message": "Still there?",
    }

    wait_for(lambda: heartbeats(panes, "reviewer"), "a heartbeat")
    panes.swarm.stop(everything=True)
    before = len(heartbeats(panes, "reviewer"))
    panes.swarm.resume(everything=True)
    wait_for(lambda: len(heartbeats(panes, "reviewer")) > before, "another heartbeat")
    assert heartbeats(panes, "developer") == []


def heartbeats(panes: PaneLab, agent: str) -> list[str]:
    return [one.message.id for one in panes.swarm.messages.history(f"{agent}@fx") if one.message.type == "heartbeat"]


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        ({"modle": "x"}, "OVERRIDE"),
        ({"permissions": "x"}, "OVERRIDE"),
        ({"worktree.enabled": "yes"}, "OVERRIDE"),
        ({"heartbeat.message": "x"}, "OVERRIDE"),
        ({"tester:model": "x"}, "OVERRIDE"),
        ({"root_dir": "/nowhere/at/all"}, "CONFIG"),
    ],
)
def test_what_is_wrong_starts_nothing(panes: PaneLab, overrides: dict[str, object], code: str) -> None:
    with pytest.raises(SwarmError) as raised:
        panes.swarm.start("fx", "developer", task=QUICK, program="demo", overrides=overrides)

    assert raised.value.code == code
    assert not (panes.root / ".swarm" / "sessions" / "fx").exists()
    assert not (panes.root / ".worktrees").exists()


def test_two_agents_of_one_role_are_checked_each_for_itself(panes: PaneLab) -> None:
    with pytest.raises(SwarmError) as raised:
        panes.swarm.start("fx", "developer:2", program="demo", overrides={"developer-1:root_dir": "/nowhere/at/all"})

    assert "/nowhere/at/all" in raised.value.message
