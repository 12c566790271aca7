"""Read files of somebody who may mean harm: an agent can put anything into its home and its worktree.

Nothing here waits at a pipe, reads a device, or takes more than it was told.  Below the box of an agent no link is
followed: there it would show what the agent itself cannot see.
"""

from __future__ import annotations

import errno
import os

from swarm.machine import own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: So many names of one folder are looked at.
MOST_NAMES = 10_000
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REGULAR, _KIND = 0o100000, 0o170000  # `stat` tells the same


def is_in_box(path: str) -> bool:
    """Whether a path lies where an agent in a box can put anything."""
    return bool(own.box_of(path))


def open_file(path: str, flags: int = 0) -> int:
    """Open a regular file to read.

    Raises:
        OSError: it is not there, cannot be read, or is something else; ``ELOOP``: a link is in the way.
    """
    fd = own.open_foreign(path, _READ | flags)
    if os.fstat(fd).st_mode & _KIND != _REGULAR:
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return fd


def names(folder: str, most: int = MOST_NAMES) -> list[str]:
    """Return what is in a folder, sorted; nothing where it cannot be listed, and of too many only some."""
    try:
        box = own.box_of(f"{folder}/")
        fd = own.folder_below(box, folder) if box else os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        with os.scandir(fd) as entries:
            return sorted(entry.name for entry, _ in zip(entries, range(most), strict=False))
    finally:
        os.close(fd)


def below(folder: str, most: int = MOST_NAMES, depth: int = 4) -> Iterator[str]:
    """Yield the paths of what is no folder below a folder, without following links."""
    if depth and most:
        for name in names(folder, most):
            path = f"{folder}/{name}"
            if os.path.isdir(path) and not os.path.islink(path):
                yield from below(path, most, depth - 1)
            else:
                yield path
