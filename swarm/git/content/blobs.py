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


def tree_name_of(entries: Iterable[tuple[bytes, bytes, bytes]], length: int) -> str:
    """Return the object id of the tree of these (path, mode, binary object id).

    Args:
        length: of an object id of the repository, in hexadecimal digits.
    """
    kind = hashlib.sha256 if length == 64 else hashlib.sha1
    folders: dict[bytes, list[tuple[bytes, bytes]]] = {b"": []}
    for path, mode, oid in entries:
        folder, _, name = path.rpartition(b"/")
        folders.setdefault(folder, []).append((name, b"%b %b\0%b" % (mode, name, oid)))
    for path in list(folders):  # those in which there are only folders
        folder = path.rpartition(b"/")[0]
        while folder not in folders:
            folders[folder] = []
            folder = folder.rpartition(b"/")[0]
    found = ""
    for path in sorted(folders, key=lambda path: path.count(b"/") + bool(path), reverse=True):
        body = b"".join(line for _, line in sorted(folders[path]))  # git sorts a folder as if its name had a slash
        digest = kind(b"tree %d\0%b" % (len(body), body), usedforsecurity=False)
        folder, _, name = path.rpartition(b"/")
        folders[folder].append((name + b"/", b"40000 %b\0%b" % (name, digest.digest())))
        found = digest.hexdigest()
    return found
