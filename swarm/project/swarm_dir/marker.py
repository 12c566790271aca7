"""The marker of a swarm directory, and making a folder one."""

from __future__ import annotations

import re
from pathlib import Path

from swarm.kit import files
from swarm.kit.errors import StateDirProblem, SwarmError, SymlinkInTheWay
from swarm.machine import records
from swarm.project.config.file import CONFIG_FILE, default_config_text
from swarm.project.errors import SwarmDirExists, SwarmDirNotFound, SwarmDirProblem
from swarm.version import __version__

MARKER = records.MARKER
#: The folders that `init_dir` makes; only the user may read the private ones.
OPEN_DIRS = (
    "roles",
    "claude-config/default",
    "projects",
    "worktrees",
    "pods/roles",
    "pods/templates",
)
PRIVATE_DIRS = ("sessions", "sockets")
_OLD_DIRS = ("roles", "sessions", "sockets")
_MARKER_LINE = r"v?(\d{1,6}(?:\.\d{1,6}){0,3}(?:[-+.]?[0-9A-Za-z]{1,20}){0,4})"
_MARKER_LIMIT = 4096


def is_swarm_dir(directory: str | Path) -> bool:
    """Whether *directory* holds a valid marker; never raises."""
    try:
        read_marker_version(directory)
    except (SwarmError, OSError, ValueError):
        return False
    return True


def read_marker_version(directory: str | Path) -> str:
    """Return the version in the marker, without its ``v``.

    Raises:
        SwarmDirNotFound: there is no marker.
        SwarmDirProblem: the marker is broken.
        NoPermission, EnvironmentProblem: it cannot be read.
    """
    marker = Path(directory) / MARKER
    try:
        content = files.read_small(marker, _MARKER_LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        what = f"{directory} is not a swarm directory (missing {MARKER})"
        raise SwarmDirNotFound(what, hint=f"run `swarm init {directory}`") from None
    except IsADirectoryError:
        raise _broken(marker, "it is a folder") from None
    except OSError as error:
        raise files.translate(error, "cannot read") from error
    except SwarmError as error:
        raise _broken(marker, error.message.rpartition(": ")[2]) from None
    line = content.decode("utf-8", "replace").partition("\n")[0].strip()
    match = re.fullmatch(_MARKER_LINE, line)
    if match is None:
        what = f"its first line is {line[:40]!a}" if line else "it is empty"
        raise _broken(marker, f"{what}, expected v{__version__}")
    return match[1]


def _broken(marker: Path, what: str) -> SwarmDirProblem:
    return SwarmDirProblem(
        f"the marker {marker} is broken: {what}",
        hint="if the directory is swarm's, remove the marker and run `swarm init` there again",
    )


def write_marker(directory: str | Path) -> None:
    """Write the current version into the marker, in one step.

    Raises:
        NoPermission, NoSpace, EnvironmentProblem: it cannot be written; an old marker is unchanged.
    """
    with files.os_errors("cannot write the marker"):
        files.write_atomic(Path(directory) / MARKER, f"v{__version__}\n".encode(), 0o644)


def looks_like_swarm_dir(directory: str | Path) -> bool:
    """Whether a folder without a marker was made by a swarm from before there were markers."""
    return all(Path(directory, name).is_dir() for name in _OLD_DIRS)


def make_swarm_dir(path: Path, mode: int) -> None:
    """Make the folder, its content, and last the marker."""
    if is_swarm_dir(path):
        raise SwarmDirExists(f"{path} is already a swarm directory")
    if (path / MARKER).is_dir():
        raise _broken(path / MARKER, "it is a folder")
    with files.os_errors("cannot make the swarm directory"):
        _make(path, mode, parents=True)
        for name in OPEN_DIRS:
            for part in reversed([Path(name), *Path(name).parents][:-1]):
                _make(path / part, 0o755)
        for name in PRIVATE_DIRS:
            _make(path / name, 0o700)
            (path / name).chmod(0o700)
        if not files.exists(path / CONFIG_FILE):
            files.write_atomic(path / CONFIG_FILE, default_config_text().encode(), 0o644)
    write_marker(path)


def _make(path: Path, mode: int, *, parents: bool = False) -> None:
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if path.is_symlink() and not parents:
            raise SymlinkInTheWay(f"cannot use {path}: it is a symbolic link") from None
        if not path.is_dir():
            hint = "move it away, or choose another directory"
            raise StateDirProblem(f"cannot use {path}: it is not a folder", hint=hint) from None
