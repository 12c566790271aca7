"""Compute the object id of a file, without git."""

from __future__ import annotations

import hashlib
import os

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
