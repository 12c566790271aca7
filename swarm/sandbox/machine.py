"""What a box takes over from the machine: programs and libraries, and of ``/etc`` what they read."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from typing import TYPE_CHECKING

from swarm.sandbox.values import Mount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Beside /usr; on most machines links into it.
_BESIDE = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Of /etc what git needs to look at a worktree.
_FOR_GIT = ("ld.so.cache", "gitconfig", "alternatives")
#: Of /etc what programs need: nothing about users, keys, names or hosts. Each mount costs time at every start.
_SETTINGS = (*_FOR_GIT, "ssl", "pki", "localtime", "nsswitch.conf", "terminfo", "mime.types", "fonts", "java", "npmrc")

_WRITE = 0o222


@functools.cache
def system() -> tuple[Mount, ...]:
    """Return what every box of an agent shows of this machine, read-only."""
    return tuple(_shown(_SETTINGS))


@functools.cache
def for_git() -> tuple[Mount, ...]:
    """Return what a box shows of this machine in which git looks at a worktree, read-only."""
    return tuple(_shown(_FOR_GIT))


def _shown(settings: Iterable[str]) -> Iterator[Mount]:
    yield Mount("--ro-bind", "/usr", "/usr")
    for path in (*_BESIDE, *map("/etc/{}".format, settings)):
        if os.path.islink(path) and os.path.join(os.path.dirname(path), os.readlink(path)).startswith("/usr/"):
            yield Mount("--symlink", os.readlink(path), path)
        elif os.path.isdir(path) or (path.startswith("/etc/") and os.path.exists(path)):
            yield Mount("--ro-bind", path, path)


@functools.cache
def python() -> tuple[str, ...]:
    """Return the folders of this Python and of swarm, for the `swarm` command and the hooks in a box."""
    package = os.path.dirname(os.path.dirname(__file__))
    wanted = (sys.base_prefix, sys.prefix, package)
    found: list[str] = []
    for path in wanted:
        if not any(_is_in(path, other) for other in ("/usr", *found)) and path != "/":
            found.append(path)
    return tuple(found)


def program(executable: str) -> tuple[str, tuple[str, ...]]:
    """Return the path of a program in a box, and what a box must show for it: its file, or of node.js its packages.

    Args:
        executable: its path, which may be a link.
    """
    kept = ("/usr", *python())
    if any(_is_in(executable, one) for one in kept):
        return executable, ()
    real = os.path.realpath(executable)
    packages, below, _ = real.partition("/node_modules/")
    found = [packages + below.rstrip("/"), *_node(executable)] if below else [real]
    return real, tuple(path for path in dict.fromkeys(found) if not any(_is_in(path, one) for one in kept))


def _node(executable: str) -> list[str]:
    """Return the node.js beside a program, or in the caller's path."""
    beside = os.path.join(os.path.dirname(executable), "node")
    node = beside if os.path.exists(beside) else shutil.which("node") or ""
    return [os.path.abspath(node), os.path.realpath(node)] if node else []


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


@functools.cache
def kernel() -> tuple[Mount, ...]:
    """Return what a box shows of the kernel's own files, read-only on top of its ``/proc``.

    In a box that root has made they belong to whoever works in it.  bubblewrap covers some, by their folder's mode.
    """
    with os.scandir("/proc") as entries:
        found = [
            entry.path
            for entry in entries
            if not (entry.name.isdigit() or entry.is_symlink())
            and (entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_mode & _WRITE)
        ]
    return tuple(Mount("--ro-bind", path, path) for path in sorted(found))
