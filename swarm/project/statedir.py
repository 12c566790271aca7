"""Make the folder ``.swarm/`` of a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.project.layout import MARKER
from swarm.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.world import World


def prepare(world: World) -> None:
    """Make ``.swarm/``, private and hidden from git. May be repeated at any point.

    Raises:
        StateDirProblem, SymlinkInTheWay: something else is there.
    """
    layout = world.layout
    files.make_private_dir(layout.state)
    files.make_private_dir(layout.journal)
    _write_once(layout.state / ".gitignore", world.ignore_text)
    _write_once(layout.state / MARKER, f"v{__version__}\n".encode("ascii"))


def _write_once(path: Path, data: bytes) -> None:
    while not files.exists(path):
        try:
            files.write_atomic(path, data)
        except FileNotFoundError:
            # Another first command was quicker, and by now sweeps temporary files: ours too.
            if not path.parent.is_dir():
                raise
