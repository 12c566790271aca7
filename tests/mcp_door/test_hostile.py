"""Nothing crosses, and nothing falls over: the short form of the 5,000 calls of ``scripts/hostile``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.mcp_door.hostile import SECRETS, VICTIM, Hostile
from tests.mcp_door.test_tasks import lead_and_helper

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Puppets

#: As many calls; ``scripts/hostile`` asks for more.
CALLS = int(os.environ.get("SWARM_HOSTILE_CALLS", "300"))
pytestmark = [pytest.mark.integration, pytest.mark.timeout(120 + CALLS)]


def test_nothing_crosses(puppets: Puppets, server: Serving) -> None:
    """Identity, arguments, sizes, order, others' tasks: by doors of both kinds, by the socket, and by HTTP."""
    waiting = [puppets.lab.swarm.send(VICTIM, f"{SECRETS[0]} {number}")[0].id for number in range(5)]
    with puppets.door(VICTIM) as lead:
        address = lead_and_helper(puppets, lead)
    with puppets.door(address) as child:
        child.hello()
        child.call("notify_parent", status="success", message=f"{SECRETS[1]} is done")
    hostile = Hostile(puppets, seed=int(os.environ.get("SWARM_HOSTILE_SEED", "15")))
    hostile.by_door(CALLS // 3)
    port = server.start()
    hostile.by_door(CALLS // 3)
    hostile.by_socket(CALLS // 6)
    hostile.by_http(port, CALLS - hostile.calls)
    assert hostile.calls == CALLS
    assert hostile.tasks > CALLS // 20
    assert server.process is not None
    assert server.process.poll() is None, "the server lives on"
    hostile.check(puppets.lab.root, waiting, address)
    with puppets.door(VICTIM) as lead:
        lead.hello()
        assert lead.call("wait_for_event", timeout_seconds=60)["event"]["worker"] == address  # nobody has taken it
    assert server.end() == 0
