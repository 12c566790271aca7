"""What a box takes over from the machine: programs and libraries, and of ``/etc`` what they read."""

from __future__ import annotations

import functools
import os

from swarm.sandbox.values import Mount

#: Beside /usr; on most machines links into it.
_BESIDE = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
#: Of /etc: nothing about users, keys, names or hosts.
_SETTINGS = (
    *("alternatives", "ca-certificates", "ssl", "pki", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"),
    *("nsswitch.conf", "terminfo", "gitconfig", "mime.types", "gai.conf", "fonts", "java", "python3", "npmrc"),
)

_WRITE = 0o222


@functools.cache
def system() -> tuple[Mount, ...]:
    """Return what every box on this machine shows of it, read-only."""
    found = [Mount("--ro-bind", "/usr", "/usr")]
    for path in _BESIDE:
        if os.path.islink(path):
            found.append(Mount("--symlink", os.readlink(path), path))
        elif os.path.isdir(path):
            found.append(Mount("--ro-bind", path, path))
    found += [Mount("--ro-bind", path, path) for path in map("/etc/{}".format, _SETTINGS) if os.path.exists(path)]
    return tuple(found)


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
