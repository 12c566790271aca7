"""The message bus in files; ``FileBus`` is all that the rest of swarm needs of it."""

from swarm.store.bus.box import Limits
from swarm.store.bus.bus import FileBus

__all__ = ["FileBus", "Limits"]
