"""Files that go into a salvage entry by a rename: those that git cannot hold, and trees that changed after the save."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from swarm.kit import files as fsio


def move_aside(tree: Path, admin: Path | None, folder: Path, paths: list[str]) -> None:
    """Move files out of a tree that is on its way to the trash, into the salvage. May be repeated."""
    for path in paths:
        target = folder / "files" / path
        if fsio.exists(target):
            continue  # moved by an earlier try
        if fsio.exists(tree / path):
            _private_parents(target)
            _open_up(tree / path)
            fsio.rename_if_there(tree / path, target)
    if admin is not None and (admin / "modules").is_dir() and not (folder / "modules").exists():
        _private_parents(folder / "modules")
        fsio.rename_if_there(admin / "modules", folder / "modules")


def _open_up(path: Path) -> None:
    """Give the owner read access to all files: closed folders cannot be moved, closed files not restored.

    The bits it had are in the manifest.
    """
    _allow(path, 0o700)
    for where, folders, files in os.walk(path):
        for name in (*folders, *files):
            _allow(Path(where) / name, 0o500)


def _allow(path: Path, folder_bits: int) -> None:
    with contextlib.suppress(OSError):  # another user's: it is moved as it is, or the move says why not
        mode = path.lstat().st_mode
        wanted = folder_bits if stat.S_ISDIR(mode) else 0o400
        if not stat.S_ISLNK(mode) and mode & wanted != wanted:
            fsio.set_mode(path, stat.S_IMODE(mode) | wanted)


def keep_whole(tree: Path, admin: Path | None, folder: Path) -> None:
    """Keep a tree as it is, because it is no longer as it was when it was saved; and git's notes about it."""
    if admin is not None and not fsio.exists(folder / "late-admin"):
        _private_parents(folder / "late-admin")
        half = folder / "late-admin.half"
        fsio.remove_tree(half)
        fsio.copy_tree(admin, half)
        fsio.rename_if_there(half, folder / "late-admin")
    if fsio.exists(tree) and not fsio.exists(folder / "late"):
        _private_parents(folder / "late")
        fsio.rename_if_there(tree, folder / "late")


def _private_parents(path: Path) -> None:
    fsio.make_folders(path.parent, 0o700)
