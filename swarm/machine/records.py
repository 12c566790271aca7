"""Read swarm's small JSON files, and hooks' events."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SCHEMA = 1
#: The folder of the state in a repository.
STATE = ".swarm"
#: What makes a folder a swarm directory.
MARKER = ".swarm-dir.txt"
#: The variables that name one.
NAMING = ("SWARM_DIR", "SWARM_ROOT")
_LIMIT = 64 << 10
_MARKER_LIMIT, _MOST_PARTS = 4096, 4
#: Below it no folder may be a link, where an agent in a box can have put one.
_BOX = "/box/"
_REGULAR, _KIND = 0o100000, 0o170000  # `stat` tells the same


def read(path: str, limit: int = _LIMIT) -> dict[str, Any] | None:
    """Return a record; None: not there, not readable, not one of ours, or of a newer schema."""
    try:
        record = read_object(path, limit)
    except (OSError, ValueError):
        return None
    return record if record.get("schema") == SCHEMA else None


def read_object(path: str, limit: int = _LIMIT, *, private: bool = False, follow: bool = False) -> dict[str, Any]:
    """Return the JSON object in a small file: the one reader of such files, of swarm's own and of others.

    Args:
        private: refuse a file that is not ours or that others can read or write.
        follow: the file may be a link, as a user's own settings often are.

    Raises:
        OSError: it is not there or cannot be read.
        ValueError: it is something else, too large, or not private.
    """
    found = loads(read_bytes(path, limit, private=private, follow=follow))
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  # one kind for all that is wrong with it
    return found


def read_bytes(path: str, limit: int, *, private: bool = False, follow: bool = False) -> bytes:
    """Return the content of a regular file; opening never blocks.

    Args:
        private: refuse a file that is not ours or that others can read or write.
        follow: the file may be a link; below the box of an agent none is followed.

    Raises:
        OSError: it is not there or cannot be read.
        ValueError: it is something else, too large, or not private.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    if _BOX in path:
        from swarm.machine import own  # hooks start without

        fd = own.open_foreign(path, flags)
    else:
        fd = os.open(path, flags)
    try:
        info = os.fstat(fd)
        if info.st_mode & _KIND != _REGULAR:
            raise ValueError("it is not a regular file")
        if private and (info.st_uid != os.geteuid() or info.st_mode & 0o077):
            raise ValueError("it is not private")
        data = b""
        while len(data) <= limit and (piece := os.read(fd, limit + 1 - len(data))):
            data += piece
    finally:
        os.close(fd)
    if len(data) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return data


def names_good_dir(environ: Mapping[str, str]) -> bool:
    """Whether the variables that name a swarm directory surely name none that is wrong; else ``dirs`` has to look."""
    named, root = (environ.get(one, "") for one in NAMING)
    return not root and (not named or (named[0] == "/" and is_marked(named)))


def is_marked(folder: str) -> bool:
    """Whether a folder is beyond doubt a swarm directory: it has the marker, with a plain version in it."""
    try:
        line = read_bytes(f"{folder}/{MARKER}", _MARKER_LIMIT).partition(b"\n")[0]
    except (OSError, ValueError):
        return False
    parts = line[1:].split(b".")
    return line[:1] == b"v" and len(parts) <= _MOST_PARTS and all(one.isdigit() and len(one) <= 6 for one in parts)


def is_home(folder: str) -> bool:
    """Whether a folder is a swarm directory in which state is kept itself: it has the marker, and is no repository."""
    return os.path.isfile(f"{folder}/{MARKER}") and not os.path.exists(f"{folder}/.git")


def state_of(root: str) -> str:
    """Return where the state of a repository, or of a swarm directory outside of one, is kept."""
    return root if is_home(root) else f"{root}/{STATE}"


def loads(data: bytes) -> object:
    """Read one value.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def line(record: Mapping[str, object]) -> bytes:
    """Return plain values by name as one line of ASCII; anything else in it is left out."""
    plain = {name: value for name, value in record.items() if value is None or isinstance(value, (str, int))}
    return json.dumps(plain).encode("ascii") + b"\n"
