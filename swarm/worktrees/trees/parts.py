"""Shared parts of looking at, saving and restoring a working tree."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.project.layout import RECORD_COPY

if TYPE_CHECKING:
    from collections.abc import Mapping


#: Files of an admin folder that belong to the place, not to the work.
_NOT_WORK = frozenset({"gitdir", "commondir", "locked", RECORD_COPY})
HEX = re.compile(rb"\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b")
MANIFEST = "manifest.json"
#: A shared part of a private index would be written into the repository, and stay there.
IN_ONE_FILE = ("-c", "core.splitIndex=false")


def cwd_of(env: Mapping[str, str]) -> Path | None:
    """Return the folder to run git in: with a sparse checkout it looks for files from where it runs."""
    tree = Path(env["GIT_WORK_TREE"])
    return tree if tree.is_dir() else None


def has_index(admin: Path) -> bool:
    """Whether a worktree has its own index."""
    return (admin / "index").is_file()


def admin_files(admin: Path) -> list[Path]:
    """Return the files of an admin folder that belong to the work in the tree."""
    found = []
    for where, folders, names in os.walk(admin):
        top = Path(where) == admin
        if top:
            folders[:] = [folder for folder in folders if folder != "modules"]
        wanted = [name for name in names if not name.endswith(".lock") and not (top and name in _NOT_WORK)]
        found += [Path(where) / name for name in wanted]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())
