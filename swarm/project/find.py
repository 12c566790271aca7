"""Find the main checkout from files, without running git; `git/discover.py` asks git itself."""

from __future__ import annotations

import os
from pathlib import Path

from swarm.machine.records import read_bytes

_LIMIT = 1 << 16


def main_checkout(start: str | Path) -> Path | None:
    """Return the main checkout around a folder, also from within a linked worktree; None outside of a repository.

    It looks only where a repository usually keeps itself: of a git folder elsewhere only git knows the checkout.
    """
    folder = os.path.abspath(start)
    while True:
        entry = folder + "/.git"
        if os.path.exists(entry + "/HEAD"):
            return Path(folder)
        if os.path.isfile(entry):
            return Path(_main_of(folder, entry))
        if folder == "/":
            return None
        folder = os.path.dirname(folder)


def _main_of(folder: str, pointer: str) -> str:
    """Return the main checkout of a linked worktree; the folder itself when it is none."""
    try:
        admin = os.path.join(folder, _text(pointer).removeprefix("gitdir: "))
        common = os.path.normpath(os.path.join(admin, _text(admin + "/commondir")))
    except (OSError, ValueError):
        return folder  # a submodule, or a checkout whose git folder stands apart
    return os.path.dirname(common) if os.path.basename(common) == ".git" else folder


def _text(path: str) -> str:
    return os.fsdecode(read_bytes(path, _LIMIT)).rstrip("\n")
