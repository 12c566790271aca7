"""Nothing crosses, and nothing falls over: the short form of the 5,000 calls of ``scripts/hostile``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.mcp_door.hostile import VICTIM, Hostile

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Puppets

#: As many calls; ``scripts/hostile`` asks for more.
CALLS = int(os.environ.get("SWARM_HOSTILE_CALLS", "300"))
pytestmark = [pytest.mark.integration, pytest.mark.timeout(120 + CALLS)]


def test_nothing_crosses(puppets: Puppets, server: Serving) -> None:
    """Identity, arguments, sizes, order: by doors of both kinds, by the socket, and by HTTP."""
    waiting = [puppets.lab.swarm.send(VICTIM, f"for the reviewer, {number}")[0].id for number in range(5)]
    hostile = Hostile(puppets, seed=int(os.environ.get("SWARM_HOSTILE_SEED", "15")))
    hostile.by_door(CALLS // 3)
    port = server.start()
    hostile.by_door(CALLS // 3)
    hostile.by_socket(CALLS // 6)
    hostile.by_http(port, CALLS - hostile.calls)
    assert hostile.calls == CALLS
    assert server.process is not None
    assert server.process.poll() is None, "the server lives on"
    hostile.check(puppets.lab.root, waiting)
    assert server.end() == 0
