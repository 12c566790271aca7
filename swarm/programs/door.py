"""The MCP door of an agent in the configuration of its program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: The door's name in the program; the second one where the user or the project has a server of the first.
NAME, OTHER = "swarm", "swarm_team"
#: So long a program lets a call of the door take, in seconds: longer than any wait of it. And a start.
LONGEST, START = 100_000, 60
_LARGEST = 16 << 20


def name_beside(configurations: Iterable[Path]) -> str:
    """Return the name of the door, which no server in these files has; they may have comments."""
    return OTHER if any(_names_swarm(path) for path in configurations) else NAME


def _names_swarm(path: Path) -> bool:
    """Whether a file has a key ``swarm``, in JSON or TOML; one too many only changes the door's name."""
    try:
        text = files.read_small(path, _LARGEST).decode("utf-8", "replace")
    except (OSError, SwarmError):
        return False
    return re.search(rf'["\']?\b{NAME}\b["\']?\s*[:=\].]', text) is not None
