"""Read swarm's small JSON files without the ``json`` module."""

from __future__ import annotations

import posix as os  # most of `os`, and loaded already: `os` itself is a sixth of the time of a `swarm send`

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import stat_result
    from typing import Any

SCHEMA = 1
#: What makes a folder a swarm directory.
MARKER = ".swarm-dir.txt"
#: The variables that name one.
NAMING = ("SWARM_DIR", "SWARM_ROOT")
_LIMIT = 64 << 10
_MARKER_LIMIT, _MOST_PARTS = 4096, 4
_REGULAR, _FOLDER, _KIND = 0o100000, 0o040000, 0o170000  # `stat` tells the same


def read(path: str, limit: int = _LIMIT) -> dict[str, Any] | None:
    """Return a record; None: not there, not readable, not one of ours, or of a newer schema."""
    try:
        record = parse(read_bytes(path, limit).decode())
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None


def read_bytes(path: str, limit: int) -> bytes:
    """Return the content of a regular file; links are not followed and opening never blocks.

    Raises:
        OSError: it is not there or cannot be read.
        ValueError: it is something else, or too large.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if info.st_mode & _KIND != _REGULAR or info.st_size > limit:
            raise ValueError("it is not a regular file, or too large")
        data = b""
        while piece := os.read(fd, limit + 1 - len(data)):
            data += piece
    finally:
        os.close(fd)
    if len(data) > limit:
        raise ValueError("it is too large")
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


def is_folder(info: stat_result) -> bool:
    """Whether what was looked at is a folder."""
    return info.st_mode & _KIND == _FOLDER


def parse(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is none.
    """
    scan = _scanner()
    if scan is None:
        import json

        return json.loads(text)
    text = text.strip(" \t\n\r")
    try:
        value, end = scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


class _How:
    """What ``json.JSONDecoder`` tells the scanner."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012  # the scanner's own


def _scanner() -> Callable[[str, int], tuple[Any, int]] | None:
    """Return the part of ``json`` that does the work; None where it is not to be had alone."""
    try:
        from _json import make_scanner
    except ImportError:
        return None
    return make_scanner(_How)  # type: ignore[arg-type]  # only its attributes are read
