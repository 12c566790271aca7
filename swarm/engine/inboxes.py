"""Where the messages of a repository's agents are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.domain.names import tail

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.engine.world import World
    from swarm.store.bus import FileBus


def bus_of(world: World) -> FileBus:
    """Return the message bus of a repository."""
    from swarm.engine.post_rules import open_bus  # most commands need none

    return open_bus(str(world.layout.state / "messages"), lambda: world.settings)


def inbox_folder(world: World, session: str, agent: str) -> Path:
    """Return where an agent's messages come in."""
    return world.layout.state / "messages" / "inbox" / tail(agent, session)
