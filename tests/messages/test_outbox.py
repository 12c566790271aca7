"""What an agent has sent: found in the inboxes of those it was sent to."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm import Stored
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SWARM = f"{shlex.quote(sys.executable)} -P -m swarm"


@pytest.fixture
def shells(panes: PaneLab) -> PaneLab:
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer,reviewer", program="shell", task="")
    return panes


def lines(found: tuple[Stored, ...]) -> list[tuple[str, str, str]]:
    return [(one.message.to, one.message.body, one.state) for one in found]


def says(lab: PaneLab, agent: str, command: str, until: int) -> None:
    """Let an agent send, and wait until its outbox has so many."""
    lab.type(agent, f"{SWARM} {command}")
    wait_for(lambda: len(lab.swarm.messages.outbox(agent)) == until, f"{command} by {agent}", 60)


def test_all_that_an_agent_sent_and_where_it_is(shells: PaneLab) -> None:
    messages = shells.swarm.messages
    says(shells, "developer", "send reviewer first", 1)
    says(shells, "developer", "send user,reviewer second --priority high", 3)
    says(shells, "developer", "queue add work third", 4)
    says(shells, "reviewer", "send developer 'not mine'", 1)
    taken = messages.take("user")
    assert taken is not None

    assert sorted(lines(messages.outbox("developer"))[1:3]) == [
        ("reviewer@fx", "second", "queued"),
        ("user", "second", "claimed"),
    ]
    messages.done(taken)
    assert ("user", "second", "acked") in lines(messages.outbox("developer"))
    assert lines(messages.outbox("developer"))[::3] == [
        ("reviewer@fx", "first", "queued"),
        ("queue.work", "third", "queued"),
    ]
    assert [one.message.body for one in messages.outbox("developer", 1)] == ["third"]


def test_what_the_user_sent_and_the_command(shells: PaneLab) -> None:
    assert shells.swarm.messages.outbox() == ()
    none = shells.cli("outbox")
    assert (none.returncode, none.stdout, none.stderr) == (0, "", "no messages from user\n")
    shells.swarm.messages.broadcast("to all", "fx")

    shown = shells.cli("outbox")
    data = json.loads(shells.cli("outbox", "--json", "--max", "1").stdout)["data"]

    assert [line.strip() for line in shown.stdout.splitlines()[1::2]] == ["to all", "to all"]
    assert all("ago: queued" in line for line in shown.stdout.splitlines()[::2])
    assert (data["sender"], [one["to"] for one in data["messages"]]) == ("user", ["reviewer@fx"])
    assert shells.cli("outbox", "nobody").returncode == 6
    assert shells.cli("outbox", "--max", "0").returncode == 2


def test_an_earlier_agent_of_the_same_name_is_somebody_else(shells: PaneLab) -> None:
    says(shells, "developer", "send user before", 1)
    shells.swarm.stop(everything=True)
    shells.swarm.cleanup(["fx"])
    shells.start("developer,reviewer", program="shell", task="")

    assert Swarm.open(shells.root, environ=shells.env).messages.outbox("developer") == ()
    says(shells, "developer", "send user after", 1)
    assert lines(shells.swarm.messages.outbox("developer")) == [("user", "after", "queued")]
