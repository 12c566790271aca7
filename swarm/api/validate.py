"""The verb ``validate``: needs no repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.kit.errors import SwarmError


def validate(
    directory: str | os.PathLike[str] = ".", environ: Mapping[str, str] | None = None
) -> tuple[Path | None, dict[str, list[SwarmError]]]:
    """Check configuration, roles, session records and unfinished operations. Never writes, never waits.

    Returns:
        The repository around the folder, or None; and for each area that was looked at what is wrong there.
    """
    from swarm.sessions.validate import validate as look

    return look(Path(os.path.abspath(directory)), os.environ if environ is None else environ)
