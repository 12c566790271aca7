"""A program that is known by its screen alone has its heartbeat, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import hold, say
from swarm.testing.terminal import wait_for
from tests.programs.real.test_others import ready

if TYPE_CHECKING:
    from tests.support.agents import AgentLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]


def test_it_is_sent_once_the_screen_is_idle(agents: AgentLab) -> None:
    ready(agents, "codex")
    agents.role("builder", "You build.", heartbeat={"idle_timeout": 1, "message": "What is left to do?"})
    agents.api.script("begin here", hold("go", say("I wait.")))
    swarm = agents.begin("codex", "builder", "begin here")
    agents.until("builder", "working")
    assert not swarm.messages.inbox("builder@fx")
    agents.api.open("go")

    wait_for(lambda: swarm.messages.inbox("builder@fx"), "the heartbeat", 150)

    (beat,) = swarm.messages.inbox("builder@fx")
    assert (beat.message.type, beat.message.body) == ("heartbeat", "What is left to do?")
