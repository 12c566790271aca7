"""The namespace ``swarm.config``: settings with their origins, and the swarm directory that holds them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from swarm.kit.errors import SwarmError
    from swarm.project.config.settings import Setting, Settings

_PRIVATE, _OPEN = 0o700, 0o755


class Config:
    """The settings of a repository and of the user, also outside of one. Call it for a list of all settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __repr__(self) -> str:
        return f"<Config of {len(self())} settings>"

    @classmethod
    def around(cls, directory: str | os.PathLike[str] = ".", environ: Mapping[str, str] | None = None) -> Config:
        """Return the settings that count in a folder: of its repository, if it is in one, and the user's own."""
        from swarm.git.discover import discover
        from swarm.git.errors import NotARepo
        from swarm.project.config.file import load_settings
        from swarm.project.swarm_dir import dirs

        env = dict(os.environ if environ is None else environ)
        here = Path(os.path.abspath(directory))
        try:
            project: Path | None = discover(here, env).root / ".swarm"
        except NotARepo:
            project = None
        found = dirs.find_dir(environ=env, cwd=here)
        return cls(load_settings(project, user_dir=dirs.user_dir(env), environ=env, swarm_dir=found))

    def __call__(self, key: str | None = None) -> tuple[Setting, ...]:
        """Return the settings: all, a section, or one by its key.

        Raises:
            UsageProblem: no setting has this name; the hint says which may be meant.
        """
        from swarm.project.config.settings import describe

        found = tuple(one for one in describe() if key is None or one.key == key or one.key.startswith(f"{key}."))
        if key is not None and not found:
            self._settings.value_of(key)  # says what may be meant
        return found

    @property
    def settings(self) -> Settings:
        """The settings in effect, by section (``.git.timeout``), each with its origin."""
        return self._settings

    @staticmethod
    def init(
        directory: str | os.PathLike[str] | None = None,
        *,
        user: bool = False,
        around: str | os.PathLike[str] | None = None,
    ) -> Path:
        """Make a swarm directory, whose config.yaml lists every setting, and return it.

        Args:
            directory: the folder; default: ``.swarm`` of the repository, outside of one the current folder.
            user: make the user's own, ``~/.swarm``.
            around: the folder that paths count from; default: the current one.

        Raises:
            SwarmDirExists: it is one already; nothing was changed.
        """
        from swarm.kit import files
        from swarm.project.find import main_checkout
        from swarm.project.layout import STATE_DIR
        from swarm.project.swarm_dir import dirs
        from swarm.roles import schemas
        from swarm.roles.find import ignore_template

        start = Path(os.path.abspath(around or os.curdir))
        root = main_checkout(start)
        ours = None if root is None else root / STATE_DIR
        target = directory or (None if user else "." if ours is None else ours)
        is_ours = ours is not None and target is not None and start / target == ours
        with files.os_errors("cannot make a swarm directory"):
            named = None if target is None else os.fspath(target)
            made = dirs.init_dir(named, global_=user, mode=_PRIVATE if is_ours else _OPEN, cwd=start)
            if is_ours and not files.exists(made / ".gitignore"):
                files.write_atomic(made / ".gitignore", ignore_template())  # as the first change would
            schemas.place(made)
        return made

    @staticmethod
    def schema(name: str) -> dict[str, Any]:
        """Return the JSON Schema of a kind of file: ``bridge``, ``config``, ``role``, ``pod`` or ``workflow``.

        Raises:
            UsageProblem: there is none of this name.
        """
        from swarm.roles import schemas

        return schemas.schema(name)

    @staticmethod
    def validate(
        directory: str | os.PathLike[str] = ".", environ: Mapping[str, str] | None = None
    ) -> tuple[Path | None, dict[str, list[SwarmError]]]:
        """Check configuration, roles, session records and unfinished operations. Never writes, never waits.

        Returns:
            The repository around the folder, or None; and for each area that was looked at the problems there.
        """
        from swarm.sessions.validate import validate

        return validate(Path(os.path.abspath(directory)), os.environ if environ is None else environ)
