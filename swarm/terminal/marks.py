"""The marks by which swarm recognises its panes and processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.model import Session
    from swarm.project.world import World
    from swarm.terminal.values import Pane


#: In the place of a session, which cannot be called so: the panes that follow tasks.
FOLLOWERS = "_tasks"


def stamp_of(session: Session | str, agent: str, root: Path) -> str:
    """Return the mark in the environment of everything an agent starts."""
    from hashlib import sha256

    name = session if isinstance(session, str) else session.name
    where = sha256(os.fsencode(root)).hexdigest()[:12]
    return f"{where}/{name}/{agent}"


def repository_mark(root: Path) -> str:
    """Return the word by which panes of a repository are known: a path may hold anything, this does not."""
    from hashlib import sha256

    return sha256(os.fsencode(root)).hexdigest()[:16]


def panes_of(world: World, session: str) -> tuple[Pane, ...]:
    """Return the panes of one session of this repository."""
    mark = repository_mark(world.layout.root)
    return tuple(pane for pane in world.terminal.panes() if pane.repository == mark and pane.session == session)
