"""Settings of the message bus, read only when they matter."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from swarm.bus.protocol import Keep, PostBus
    from swarm.project.config.settings import Settings


def open_bus(folder: str, settings: Callable[[], Settings]) -> PostBus:
    """Return the messages below a folder, which keep to the settings."""
    from swarm.bus.filebus import FileBus

    def patience() -> float:
        from swarm.bus.log.files import PATIENCE
        from swarm.kit.errors import SwarmError

        try:
            return settings().messages.lock_timeout
        except SwarmError:  # a mistake in the settings is no reason not to send
            return PATIENCE

    return FileBus(
        folder,  # type: ignore[arg-type]  # text does
        keep=lambda: keep_of(settings()),
        patience=patience,
        saved=lambda: saved_boxes(f"{os.path.dirname(folder)}/salvage"),
    )


def saved_boxes(salvage: str) -> Iterator[str]:
    """Yield the saved boxes of removed agents in the salvage folder; a restore brings them back."""
    folders = [salvage]
    for _ in ("session", "agent", "entry", "box"):
        folders = [path for folder in folders for path in _folders_in(folder)]
    yield from folders


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [one.path for one in entries if one.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def keep_of(settings: Settings) -> Keep:
    """Return how long finished messages are kept."""
    from swarm.bus.protocol import Keep

    return Keep(settings.messages.keep, settings.messages.keep_bytes)


def settings_of(state: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings of the repository with this ``.swarm`` folder.

    Raises:
        ConfigProblem, Refused: something in them is wrong.
    """
    from pathlib import Path

    from swarm.kit.errors import SwarmError
    from swarm.project.config.file import load_settings
    from swarm.project.swarm_dir import dirs

    home = environ.get("HOME", "")
    user = Path(home, ".swarm") if os.path.isabs(home) else None
    found = None
    with contextlib.suppress(SwarmError):  # of the variable; messages go on without it
        found = dirs.find_dir(environ=environ, cwd=Path(state).parent)
    return load_settings(Path(state), user_dir=user, environ=environ, swarm_dir=found)
