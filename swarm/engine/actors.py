"""Who asks for something to be done: the agent whose program this process belongs to, else the user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.pane.whoami import whoami

if TYPE_CHECKING:
    from swarm.engine.world import World


def actor(world: World) -> str:
    """Return who acts, for records that people read."""
    who = whoami(world.environ)
    return f"{who.agent}@{who.session}" if who is not None else user_name()


def user_name() -> str:
    """Return the account that this process runs under; containers have some without a name."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"
