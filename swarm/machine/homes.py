"""Where state is kept: in the folder ``.swarm`` of a repository; outside of one in a swarm directory itself."""

from __future__ import annotations

import os

from swarm.machine.records import MARKER

#: The folder in a repository.
STATE = ".swarm"


def is_home(folder: str) -> bool:
    """Whether a folder is a swarm directory in which state is kept itself: it has the marker, and is no repository."""
    return os.path.isfile(f"{folder}/{MARKER}") and not os.path.exists(f"{folder}/.git")


def state_of(root: str) -> str:
    """Return where the state of a repository, or of a swarm directory outside of one, is kept."""
    return root if is_home(root) else f"{root}/{STATE}"
