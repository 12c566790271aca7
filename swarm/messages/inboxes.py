"""The paths of agents' inboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.project.names import tail

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.message import Message
    from swarm.bus.protocol import PostBus
    from swarm.project.world import World


def bus_of(world: World) -> PostBus:
    """Return the message bus of a repository."""
    from swarm.messages.settings import open_bus  # most commands need none

    return open_bus(str(world.layout.state / "messages"), lambda: world.settings)


def inbox_folder(world: World, session: str, agent: str) -> Path:
    """Return where an agent's messages come in."""
    return world.layout.state / "messages" / "inbox" / tail(agent, session)


def events_folder(world: World, session: str, agent: str) -> Path:
    """Return the folder in which events wait for the agent that started others."""
    return world.layout.state / "messages" / "events" / tail(agent, session)


def post_own(bus: PostBus, *messages: Message) -> None:
    """Send swarm's own messages and make missing boxes. Each has a fixed id, so sending twice makes one message."""
    from swarm.bus.errors import InboxNotFound  # who looks sends nothing

    for message in messages:
        try:
            bus.send(message)
        except InboxNotFound:
            bus.declare(message.to, generation=message.generation)
            bus.send(message)
