"""Walk a working tree without git: kinds, modes, nested repositories, a fingerprint."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: So much of what is in no commit is read in one look or one save; an agent can make terabytes of nothing at once.
MOST = 4 << 30
_KIND, _BITS = 0o170000, 0o7777
_LONGEST_PATH, _LONGEST_NAME = 4096, 256
#: A folder's path with fewer characters cannot come near that.
_SHORT = 500
#: What every bare repository has.
_BARE = frozenset({"HEAD", "objects", "refs"})


@dataclass(slots=True)
class Walk:
    """The content of a folder, with relative paths.

    Attributes:
        files: regular files and links → their permission bits (links: 0).
        links: which of *files* are symbolic links.
        folders: every folder → its permission bits.
        empty: folders with nothing in them.
        nested: folders that are repositories of their own; nothing below them is listed.
        bare: folders that look like bare repositories; listed as all others until ``set_apart`` decides.
        special: pipes, sockets, devices.
        unreadable: folders that cannot be looked into, or are too deep for that.
        sizes: of regular files.
        changed_ns: when content or mode of a regular file last changed; unlike its time, nobody can set that back.
        infos: what the system says of regular files and links.
        top: permission bits of the folder itself; 0 if it is not there.
        owners: to whom the folders belong.
        fingerprint: changes whenever anything below the folder does.
    """

    files: dict[str, int] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)
    folders: dict[str, int] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    changed_ns: dict[str, int] = field(default_factory=dict)
    infos: dict[str, os.stat_result] = field(default_factory=dict)
    top: int = 0
    owners: set[int] = field(default_factory=set)
    fingerprint: str = ""

    def set_apart(self, tracked: Iterable[str]) -> None:
        """Count bare repositories as separate ones, except those with tracked files: fixtures."""
        inside = tuple(f"{folder}/" for folder in self.bare)
        known = {path for path in tracked if path.startswith(inside)} if inside else set()
        apart = [folder for folder in self.bare if not any(path.startswith(f"{folder}/") for path in known)]
        if not apart:
            return
        below = tuple(f"{folder}/" for folder in apart)
        for names in (self.files, self.folders, self.sizes, self.changed_ns, self.infos):
            for path in [path for path in names if path.startswith(below)]:
                del names[path]
        self.links = {path for path in self.links if not path.startswith(below)}
        for listed in (self.empty, self.nested, self.special, self.unreadable):
            listed[:] = [path for path in listed if not path.startswith(below)]
        self.nested += apart


def walk(top: Path) -> Walk:
    """Look at everything below *top* except its own ``.git``."""
    found = Walk(top=_bits(top))
    marks: list[str] = []
    queue = [""]
    while queue:
        folder = queue.pop()
        if _is_too_deep(top, folder):
            found.unreadable.append(folder)
            continue
        try:
            with os.scandir(f"{top}/{folder}") as listed:
                entries = list(listed)
        except PermissionError:
            found.unreadable.append(folder)
            continue
        except (FileNotFoundError, NotADirectoryError):
            marks.append(f"gone {folder}")  # it vanished while we looked: the fingerprint says so
            continue
        names = {entry.name for entry in entries}
        if folder and ".git" in names:
            found.nested.append(folder)
            marks.extend(_nested_marks(top, folder))
            continue
        if folder and names >= _BARE:
            found.bare.append(folder)
        _note(found, marks, queue, folder, entries)
        if folder and not entries:
            found.empty.append(folder)
    for strange in (found.nested, found.bare, found.special, found.unreadable):
        strange.sort()
    digest = hashlib.sha256("\n".join(sorted(marks)).encode("utf-8", "surrogateescape"))
    found.fingerprint = digest.hexdigest()
    return found


def _is_too_deep(top: Path, folder: str) -> bool:
    """Whether what is in a folder may have a longer path than the system takes: an agent may have nested it so."""
    return len(folder) > _SHORT and len(os.fsencode(f"{top}/{folder}")) + _LONGEST_NAME >= _LONGEST_PATH


def _bits(folder: Path) -> int:
    try:
        return stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return 0


def _note(found: Walk, marks: list[str], queue: list[str], folder: str, entries: Iterable[os.DirEntry[str]]) -> None:
    """Note the entries of a folder. This runs for each of many files while a user waits."""
    prefix = f"{folder}/" if folder else ""
    files, infos, sizes, changed_ns = found.files, found.infos, found.sizes, found.changed_ns
    for entry in entries:
        path = prefix + entry.name
        if path == ".git":
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            marks.append(f"gone {path}")
            continue
        mode = info.st_mode
        kind = mode & _KIND
        if kind == stat.S_IFDIR:
            found.folders[path] = mode & _BITS
            found.owners.add(info.st_uid)
            marks.append(f"{path}/ {mode:o}")
            queue.append(path)
        else:
            marks.append(_mark(path, info))
            infos[path] = info
            if kind == stat.S_IFREG:
                files[path] = mode & _BITS
                sizes[path] = info.st_size
                changed_ns[path] = info.st_ctime_ns
            elif kind == stat.S_IFLNK:
                found.links.add(path)
                files[path] = 0
            else:
                found.special.append(path)


def _mark(path: str, info: os.stat_result) -> str:
    return f"{path} {info.st_mode:o} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino}"


def _nested_marks(top: Path, folder: str) -> list[str]:
    marks = []
    for where, _, names in os.walk(top / folder):
        for name in names:
            path = os.path.join(where, name)
            try:
                marks.append(_mark(os.path.relpath(path, top), os.lstat(path)))
            except FileNotFoundError:
                marks.append(f"gone {path}")
    return marks
