"""Compute the object ids of files and trees, without git."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECE = 1 << 20


def name_of(path: str | os.PathLike[str], length: int) -> str:
    """Return the object id of a file's bytes as they are, or of a link's target; empty when they cannot be read.

    Args:
        length: of an object id of the repository, in hexadecimal digits.
    """
    digest = hashlib.sha256() if length == 64 else hashlib.sha1(usedforsecurity=False)  # the length is the kind
    try:
        if os.path.islink(path):
            target = os.fsencode(os.readlink(path))
            digest.update(b"blob %d\0%b" % (len(target), target))
            return digest.hexdigest()
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file:
            digest.update(b"blob %d\0" % os.fstat(fd).st_size)
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()


class Folders:
    """The trees that some files make, computed and not written.

    Args:
        entries: (path, mode, binary object id) of the files.
        length: of an object id of the repository, in hexadecimal digits.

    Attributes:
        bodies: object id → content of each tree.
        name: the object id of the topmost one.
    """

    def __init__(self, entries: Iterable[tuple[bytes, bytes, bytes]], length: int) -> None:
        self._kind = hashlib.sha256 if length == 64 else hashlib.sha1
        self._lines: dict[bytes, dict[bytes, bytes]] = {b"": {}}
        for path, mode, oid in entries:
            folder, _, name = path.rpartition(b"/")
            self._lines.setdefault(folder, {})[name] = b"%b %b\0%b" % (mode, name, oid)
        for path in list(self._lines):  # those in which there are only folders
            folder = path.rpartition(b"/")[0]
            while folder not in self._lines:
                self._lines[folder] = {}
                folder = folder.rpartition(b"/")[0]
        self.bodies: dict[str, bytes] = {}
        self.name = self._close(self._lines, self.bodies)

    def changed(
        self, added: Iterable[tuple[bytes, bytes, bytes]], removed: Iterable[bytes]
    ) -> tuple[str, dict[str, bytes]]:
        """Return the name of the tree with other files, and the trees that are new with it."""
        lines: dict[bytes, dict[bytes, bytes]] = {b"": dict(self._lines[b""])}

        def opened(path: bytes) -> tuple[dict[bytes, bytes], bytes]:
            folder, _, name = path.rpartition(b"/")
            there = folder
            while there not in lines:
                lines[there] = dict(self._lines.get(there, {}))
                there = there.rpartition(b"/")[0]
            return lines[folder], name

        for path in removed:
            folder, name = opened(path)
            folder.pop(name, None)
        for path, mode, oid in added:
            folder, name = opened(path)
            folder[name] = b"%b %b\0%b" % (mode, name, oid)
        bodies: dict[str, bytes] = {}
        top = self._close(lines, bodies)
        return top, {one: body for one, body in bodies.items() if one not in self.bodies}

    def _close(self, lines: dict[bytes, dict[bytes, bytes]], bodies: dict[str, bytes]) -> str:
        """Compute the trees of some folders, the deepest first, and put each into the one above it."""
        name = ""
        for path in sorted(lines, key=lambda path: path.count(b"/") + bool(path), reverse=True):
            folder, _, last = path.rpartition(b"/")
            key = last + b"/"  # git sorts a folder as if its name had a slash
            if not lines[path] and path:
                lines[folder].pop(key, None)
                continue
            body = b"".join(line for _, line in sorted(lines[path].items()))
            digest = self._kind(b"tree %d\0%b" % (len(body), body), usedforsecurity=False)
            name = digest.hexdigest()
            bodies[name] = body
            if path:
                lines[folder][key] = b"40000 %b\0%b" % (last, digest.digest())
        return name
