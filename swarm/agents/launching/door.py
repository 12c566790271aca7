"""The MCP door of an agent as its program is to start it, and the token with which it may call by HTTP."""

from __future__ import annotations

import os
import secrets
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import broker
from swarm.machine.mcp import door
from swarm.machine.mcp.wait import OPENED
from swarm.sandbox.values import IO

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.world import World

#: In the run folder: goes with it, and is made anew at each launch.
TOKEN = "mcp.token"  # noqa: S105  # its name
_BYTES = 32


def command(world: World, agent: str, *, boxed: bool = False) -> tuple[str, ...]:
    """Return what a program runs as the agent's door; empty where there is none.

    Without the extra there is nothing to run.

    Args:
        boxed: it runs in a box, from which the door leads by the supervisor's socket.
    """
    if not (world.settings.mcp.enabled and is_installed()):
        return ()
    return (*command_of(world.layout.root, agent), *((f"{IO}/{broker.NAME}",) if boxed else ()))


def command_of(root: Path, agent: str) -> tuple[str, ...]:
    """Return the command of an agent's door."""
    return (sys.executable, "-I", "-S", door.__file__, str(root), agent)


def is_installed() -> bool:
    """Whether the extra is installed; nothing of it is loaded."""
    return find_spec("mcp") is not None


def prepare(run_dir: Path) -> None:
    """Make a new token for a launch; its door is not open yet."""
    files.unlink_if_there(run_dir / OPENED)
    files.write_atomic(run_dir / TOKEN, secrets.token_hex(_BYTES).encode("ascii"), durable=False)


def token_of(run_dir: str) -> bytes:
    """Return the token of an agent's run; without one a value that nobody can show."""
    from pathlib import Path

    try:
        return files.read_small(Path(run_dir, TOKEN)).strip() or os.urandom(_BYTES)
    except (OSError, SwarmError):
        return os.urandom(_BYTES)
