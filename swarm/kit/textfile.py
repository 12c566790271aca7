"""Read a file that a person wrote: bounded, without blocking, with clear errors."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import ConfigProblem, EnvironmentProblem

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 1 << 20


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a regular file of at most 1 MiB, or None without a file.

    Raises:
        ConfigProblem: it is a folder, pipe, device or socket, a dangling link, or too large.
        NoPermission, EnvironmentProblem: the system does not let us read it.
    """
    try:
        return files.read_small(path, LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        if files.exists(path):
            raise ConfigProblem(f"{path}: is a link that leads nowhere", hint="remove it") from None
        return None
    except IsADirectoryError:
        raise ConfigProblem(f"{path}: is a folder, not a file", hint="move it away") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigProblem(f"{path}: is a link that leads nowhere", hint="remove it") from None
        if error.errno == errno.ENXIO:  # a socket, or a pipe without a reader
            raise ConfigProblem(f"{path}: is not a regular file", hint="move it away") from None
        raise files.translate(error, "cannot read") from error
    except EnvironmentProblem as error:
        reason = "is not a regular file" if "regular" in error.message else "is larger than 1 MiB"
        raise ConfigProblem(f"{path}: {reason}", hint="move it away") from None


def decode(data: bytes, source: str) -> str:
    """Return the text of a UTF-8 file, a byte-order mark removed.

    Raises:
        ConfigProblem: it is not UTF-8 or contains NUL, with the position.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        what = "is not UTF-8 text"
        raise ConfigProblem(f"{source}:{position(before, len(before))}: {what}") from None
    if "\0" in text:
        what = "contains a NUL character"
        raise ConfigProblem(f"{source}:{position(text, text.index(chr(0)))}: {what}")
    return text.removeprefix("\ufeff")


def position(text: str, index: int) -> str:
    """Return ``line:column`` of the character at *index*, both counted from 1."""
    before = text[:index]
    return f"{before.count(chr(10)) + 1}:{index - before.rfind(chr(10))}"
