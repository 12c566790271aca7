"""The folder ``.swarm/`` of a repository: made when the first change needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm import fsio
from swarm.domain.layout import MARKER
from swarm.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.engine.world import World


def prepare(world: World) -> None:
    """Make sure that ``.swarm/`` is there, private and hidden from git. May be repeated at any point.

    Raises:
        StateDirProblem, SymlinkInTheWay: something else is there.
    """
    layout = world.layout
    fsio.make_private_dir(layout.state)
    fsio.make_private_dir(layout.journal)
    _write_once(layout.state / ".gitignore", world.ignore_text)
    _write_once(layout.state / MARKER, f"v{__version__}\n".encode("ascii"))


def _write_once(path: Path, data: bytes) -> None:
    while not fsio.exists(path):
        try:
            fsio.write_atomic(path, data)
        except FileNotFoundError:
            # Another first command was quicker, and by now sweeps temporary files: ours too.
            if not path.parent.is_dir():
                raise
