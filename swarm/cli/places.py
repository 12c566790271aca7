"""Find the main checkout from files, without running git."""

from __future__ import annotations

import os
from pathlib import Path

_LIMIT = 1 << 16


def find_root(start: Path) -> Path | None:
    """Return the main checkout around *start*, also from within a linked worktree; None if there is none."""
    for folder in (start, *start.parents):
        entry = folder / ".git"
        if entry.is_dir() and (entry / "HEAD").exists():
            return folder
        if entry.is_file():
            return _main_of(folder, _text(entry).removeprefix("gitdir: "))
    return None


def _main_of(folder: Path, gitdir: str) -> Path | None:
    """Return the main checkout of a folder whose ``.git`` is a file that names *gitdir*."""
    admin = Path(os.path.normpath(folder / gitdir))
    try:
        common = Path(os.path.normpath(admin / _text(admin / "commondir")))
    except OSError:
        return folder  # a submodule, or a checkout whose git folder stands apart
    return common.parent if common.name == ".git" else None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return os.fsdecode(file.read(_LIMIT)).strip("\n")
