"""Read the lines that another process appended to a JSON-lines file."""

from __future__ import annotations

import json
import os
import time

from swarm.machine import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

#: Size of a record's end that is searched for the last text.
END = 1 << 20
#: Longer lines no program writes; and so much is read in one look.
_LONGEST, _AT_ONCE = 64 << 20, 512 << 20
#: A greater number of tokens nobody uses; with far greater ones nothing can be reckoned.
_MOST = 10**15


class Tail:
    """One file. It may not be there yet, be cut short or be replaced; a line counts once its end is written."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._at = 0
        self._seen: tuple[int, int] = (0, 0)
        self._too_long = False

    def grown(self) -> bool:
        """Whether the file has grown; costs one ``stat``."""
        try:
            info = os.stat(self.path)
        except OSError:
            return False
        return info.st_size != self._at or (info.st_dev, info.st_ino) != self._seen

    def lines(self, *words: bytes) -> Iterator[dict[str, Any]]:
        """Give the objects that were added since; of very much only a part, and the rest at the next look.

        A line that is too long ends the file for good: what wrote it is no program that swarm knows.

        Args:
            words: only lines that hold one of these are looked at.
        """
        try:
            fd = foreign.open_file(self.path)
        except OSError:
            return
        with open(fd, "rb") as file:
            info = os.fstat(fd)
            if (info.st_dev, info.st_ino) != self._seen or info.st_size < self._at:
                self._seen, self._at, self._too_long = (info.st_dev, info.st_ino), 0, False
            begin = self._at
            file.seek(begin)
            while not self._too_long and self._at - begin < _AT_ONCE:
                line = file.readline(_LONGEST)
                if not line.endswith(b"\n"):
                    self._too_long = len(line) >= _LONGEST
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
        data = end_of(self.path, most + 1)
        whole_lines = data[-most:].split(b"\n")[:-1]
        found = (
            _object(one) for one in whole_lines[len(data) > most :] if not words or any(word in one for word in words)
        )
        return [one for one in found if one is not None]


def end_of(path: str, most: int) -> bytes:
    """Return the last bytes of a file; nothing where it cannot be read."""
    try:
        with open(foreign.open_file(path), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read(most)
    except OSError:
        return b""


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


def whole(path: str, limit: int = 64 << 20) -> dict[str, Any]:
    """Return the object that a file holds; empty when it holds none."""
    try:
        with open(foreign.open_file(path), "rb") as file:
            data = file.read(limit + 1)
    except OSError:
        return {}
    return (_object(data) or {}) if len(data) <= limit else {}


def mapping(value: object) -> dict[str, Any]:
    """Return a value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return a value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """Return a count; 0 for an invalid one, and for one that nothing counts up to."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST else 0


def iso(milliseconds: int) -> str:
    """Return a time as these records spell it, so that texts compare as times do."""
    seconds, rest = divmod(max(0, milliseconds), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"
