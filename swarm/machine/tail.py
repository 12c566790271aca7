"""Read the lines that another process appended to a JSON-lines file."""

from __future__ import annotations

import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

#: Size of a record's end that is searched for the last text.
END = 1 << 20


class Tail:
    """One file. It may not be there yet, be cut short or be replaced; a line counts once its end is written."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._at = 0
        self._seen: tuple[int, int] = (0, 0)

    def grown(self) -> bool:
        """Whether the file has grown; costs one ``stat``."""
        try:
            info = os.stat(self.path)
        except OSError:
            return False
        return info.st_size != self._at or (info.st_dev, info.st_ino) != self._seen

    def lines(self, *words: bytes) -> Iterator[dict[str, Any]]:
        """Give the objects that were added since.

        Args:
            words: only lines that hold one of these are looked at.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        with open(fd, "rb") as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                return
            if (info.st_dev, info.st_ino) != self._seen or info.st_size < self._at:
                self._seen, self._at = (info.st_dev, info.st_ino), 0
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                if not words or any(word in line for word in words):
                    found = _object(line)
                    if found is not None:
                        yield found

    def last(self, most: int, *words: bytes) -> list[dict[str, Any]]:
        """Return the objects near the end of the file as it is now, whether or not ``lines`` gave them before.

        Args:
            most: how many bytes are looked at.
            words: as for ``lines``.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        with open(fd, "rb") as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                return []
            begin = max(0, info.st_size - most)
            file.seek(begin)
            whole_lines = file.read(most).split(b"\n")[:-1]
        found = (_object(one) for one in whole_lines[bool(begin) :] if not words or any(word in one for word in words))
        return [one for one in found if one is not None]


def newest_first(paths: Iterable[str]) -> list[str]:
    """Return files, those first that were written to last."""
    return sorted(paths, key=_written, reverse=True)


def _written(path: str) -> tuple[int, str]:
    try:
        return os.stat(path).st_mtime_ns, path
    except OSError:
        return 0, path


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def whole(path: str, limit: int = 256 << 20) -> dict[str, Any]:
    """Return the object that a file holds; empty when it holds none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
                return {}
            return _object(file.read()) or {}
    except OSError:
        return {}


def mapping(value: object) -> dict[str, Any]:
    """Return a value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return a value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """Return a count; 0 for an invalid one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def iso(milliseconds: int) -> str:
    """Return a time as these records spell it, so that texts compare as times do."""
    seconds, rest = divmod(max(0, milliseconds), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"
