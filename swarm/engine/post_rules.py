"""What the settings say of messages, read only when it matters: sending one needs none of it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swarm.domain.bus import Keep
    from swarm.domain.settings import Settings
    from swarm.store.bus import FileBus


def open_bus(folder: str, settings: Callable[[], Settings]) -> FileBus:
    """Return the messages below a folder, which keep to the settings."""
    from swarm.store.bus import FileBus

    def patience() -> float:
        from swarm.domain.errors import SwarmError
        from swarm.store.bus.files import PATIENCE

        try:
            return settings().messages.lock_timeout
        except SwarmError:  # a mistake in the settings is no reason not to send
            return PATIENCE

    return FileBus(folder, keep=lambda: keep_of(settings()), patience=patience)  # type: ignore[arg-type]  # text does


def keep_of(settings: Settings) -> Keep:
    """Return how long what is settled is kept."""
    from swarm.domain.bus import Keep

    return Keep(settings.messages.keep, settings.messages.keep_bytes)


def settings_of(state: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings of the repository with this ``.swarm`` folder.

    Raises:
        ConfigProblem, Refused: something in them is wrong.
    """
    from pathlib import Path

    from swarm.store.configfile import load_settings

    home = environ.get("HOME", "")
    user = Path(home, ".swarm") if os.path.isabs(home) else None
    return load_settings(Path(state), user_dir=user, environ=environ)
