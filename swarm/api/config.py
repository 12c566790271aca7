"""Every setting with its value and origin; also outside of a repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.project.config.settings import Setting, Settings


def settings_around(directory: str | os.PathLike[str] = ".", environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings that count in a folder: those of its repository, if it is in one, and the user's own."""
    from swarm.git.discover import discover
    from swarm.git.errors import NotARepo
    from swarm.project.config.file import load_settings
    from swarm.project.swarm_dir import dirs

    env = dict(os.environ if environ is None else environ)
    try:
        project: Path | None = discover(Path(os.path.abspath(directory)), env).root / ".swarm"
    except NotARepo:
        project = None
    return load_settings(project, user_dir=dirs.user_dir(env), environ=env)


def chosen(settings: Settings, key: str | None = None) -> tuple[Setting, ...]:
    """Return all settings, those of a section, or one by its key.

    Raises:
        UsageProblem: there is none of this name; the hint says what may be meant.
    """
    from swarm.project.config.settings import describe

    found = tuple(one for one in describe() if key is None or one.key == key or one.key.startswith(f"{key}."))
    if key is not None and not found:
        settings.value_of(key)  # says what may be meant
    return found
