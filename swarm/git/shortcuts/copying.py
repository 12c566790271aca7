"""Fill new worktrees from the main checkout: read each file once, write it into every tree.

The main checkout is used as a store of blobs, no more: each file is hashed, and what is not exactly the
blob that git has for it is left to git.  The new index is the main checkout's, with what the system
says of the new files; it is used only if its own note says that it is the tree that is wanted.
Only files that have the bytes of their blobs in a worktree are copied (``ordinary.py``); git writes the others.
"""

from __future__ import annotations

import hashlib
import os
import stat
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from swarm.git.shortcuts import index as indexes
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import own

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_HASH = 20
_ALWAYS_VALID = 0x8000
#: Parts of an index that say that the rest of it lies elsewhere.
_PARTIAL = frozenset({b"link", b"sdir"})
#: Larger files are left to git, which does not hold them in memory.
_LARGEST = 64 << 20
#: How many trees a file is written to before the next one is read; bounds the indexes in memory.
_AT_ONCE = 8
#: How many files, and bytes, are read before there is a tree to write them to.
_AHEAD, _AHEAD_BYTES = 256, 4 << 20
_SECOND = 10**9
_WORD = indexes.WORD


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the index: where its facts are, its path, its git mode, its size (the lowest 32 bits), its blob."""

    place: int
    path: bytes
    mode: int
    size: int
    blob: bytes


@dataclass(frozen=True)
class Source:
    """The main checkout's index.

    Attributes:
        head: everything of it but extensions and checksum.
        trees: the tree that it is, as its cache of trees says, and those of all its folders; binary.
        cache: that extension.
    """

    head: bytes
    entries: tuple[Entry, ...]
    trees: tuple[bytes, ...]
    cache: bytes

    @property
    def tree(self) -> str:
        """The tree that it is."""
        return self.trees[0].hex()

    @cached_property
    def names(self) -> dict[bytes, frozenset[bytes]]:
        """Every folder with the names that are in it."""
        known: dict[bytes, set[bytes]] = {b"": set()}
        for entry in self.entries:
            path = entry.path
            while path:
                folder, _, name = path.rpartition(b"/")
                there = known.setdefault(folder, set())
                if name in there:
                    break
                there.add(name)
                path = folder
        return {folder: frozenset(there) for folder, there in known.items()}

    def has(self, path: bytes) -> bool:
        """Whether such a file or folder exists."""
        for wanted, whole in ((path, True), (path + b"/", False)):
            at = bisect_left(self.entries, wanted, key=lambda entry: entry.path)
            found = self.entries[at].path if at < len(self.entries) else b""
            if found == wanted if whole else found.startswith(wanted):
                return True
        return False


def read(index: Path) -> Source | None:
    """Read an index; None unless it is of the plain kind and exactly a tree."""
    try:
        data = files.read_small(index, indexes.LIMIT)
    except (OSError, SwarmError):
        return None
    cuts = indexes.entries(data, _HASH)
    if cuts is None:
        return None
    found = []
    end = indexes.START
    for place, flags, path, end in cuts:  # noqa: B007  # the last end is used
        mode = int.from_bytes(data[place + 24 : place + 28], "big")
        if flags & (indexes.EXTENDED | indexes.STAGE) or stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFLNK):
            return None  # hidden by a sparse checkout, in conflict, a submodule
        size = int.from_bytes(data[place + 36 : place + 40], "big")
        found.append(Entry(place, path, mode, size, data[place + 40 : place + 60]))
    more = dict(_extensions(data, end))
    if not _PARTIAL.isdisjoint(more):
        return None
    cache = more.get(b"TREE", b"")
    trees = _trees(cache, len(found))
    return Source(data[:end], tuple(found), trees, b"TREE" + len(cache).to_bytes(4, "big") + cache) if trees else None


def _extensions(data: bytes, place: int) -> Iterator[tuple[bytes, bytes]]:
    while place < len(data) - _HASH:
        size = int.from_bytes(data[place + 4 : place + 8], "big")
        yield data[place : place + 4], data[place + 8 : place + 8 + size]
        place += 8 + size


def _trees(cache: bytes, entries: int) -> tuple[bytes, ...]:
    """Return the tree of all entries, then those of its folders; none where something was staged since.

    For each: name NUL entries SP folders LF object; without an object where it is not known, with -1 entries.
    """
    found: list[bytes] = []
    place = 0
    while place < len(cache):
        counts = cache.find(b"\0", place) + 1
        end = cache.find(b"\n", counts) + 1
        whole = cache[counts:end].split(b" ")[0]
        if not counts or not end or whole == b"-1" or (not found and whole != b"%d" % entries):
            return ()
        found.append(cache[end : end + _HASH])
        place = end + _HASH
    return tuple(found) if place == len(cache) else ()


@dataclass(slots=True)
class _Target:
    """One tree that is being filled."""

    top: int
    index: bytearray
    admin: Path
    made: set[bytes] = field(default_factory=set)
    folder: bytes = b""  # the one that is being written to, and
    at: int = -1  # its descriptor: no path with a link in it is ever used


def first_contents(source: Source, main: Path) -> tuple[bytes | None, ...]:
    """Read the first files of the main checkout, as many as may wait in memory; None is not the blob."""
    found: list[bytes | None] = []
    room = _AHEAD_BYTES
    top = _open(main)
    try:
        for entry in source.entries[:_AHEAD]:
            found.append(_content(entry, top))
            room -= len(found[-1] or b"")
            if room < 0:
                break
    finally:
        os.close(top)
    return tuple(found)


def copy(
    source: Source,
    main: Path,
    trees: Sequence[tuple[Path, Path]],
    when_ns: int,
    ahead: Sequence[bytes | None] = (),
    leave: frozenset[bytes] = frozenset(),
) -> int:
    """Write the files of *source* into each tree, with the time *when_ns*, and each tree's index.

    Args:
        trees: (tree, its admin folder) each; registered, and empty.
        ahead: what the first files hold, where that was read a moment ago; None is read again.
        leave: files to leave out.

    Returns:
        how many files were left out, also because the main checkout has them otherwise; git has to write these.
    """
    missing = 0
    for start in range(0, len(trees), _AT_ONCE):
        missing = _copy_some(source, main, trees[start : start + _AT_ONCE], when_ns, ahead, leave)
    return missing


def _copy_some(
    source: Source,
    main: Path,
    trees: Sequence[tuple[Path, Path]],
    when_ns: int,
    ahead: Sequence[bytes | None],
    leave: frozenset[bytes],
) -> int:
    missing = 0
    targets: list[_Target] = []
    opened = [_open(main)]
    try:
        for tree, admin in trees:
            opened.append(_open(tree))
            targets.append(_Target(opened[-1], bytearray(source.head), admin))
        for number, entry in enumerate(source.entries):
            data = ahead[number] if number < len(ahead) else None
            if entry.path in leave:
                data = None
            elif data is None:
                data = _content(entry, opened[0])
            missing += data is None
            for target in targets:
                _put(target, entry, data, when_ns)
    finally:
        for fd in (*opened, *(target.at for target in targets if target.at >= 0)):
            os.close(fd)
    for target in targets:
        _write_index(target, source.cache)
    return missing


def _open(folder: Path) -> int:
    return own.folder(os.fspath(folder))


def _content(entry: Entry, main: int) -> bytes | None:
    """Return the main checkout's content, if it equals the blob."""
    try:
        if stat.S_ISLNK(entry.mode):
            data = os.readlink(entry.path, dir_fd=main)
        elif entry.size > _LARGEST:
            return None
        else:
            fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=main)
            data = _read(fd, entry.size)
    except OSError:
        return None
    found = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)  # git's own way
    found.update(data)
    return data if found.digest() == entry.blob else None


def _read(fd: int, size: int) -> bytes:
    """Read one byte more than the blob's length: a longer file is not the blob."""
    try:
        data = os.read(fd, size + 1)
        while len(data) < size and (more := os.read(fd, size + 1 - len(data))):
            data += more
        return data
    finally:
        os.close(fd)


def _put(target: _Target, entry: Entry, data: bytes | None, when_ns: int) -> None:
    """Write one file as git would, and its new ``stat`` into the index."""
    flags = entry.place + 60
    target.index[flags] &= ~(_ALWAYS_VALID >> 8)  # the user's mark is for the user's own tree
    if data is None:
        indexes.STAT.pack_into(target.index, entry.place, 0, 0, 0, 0, 0, 0, entry.mode, 0, 0, 0)
        return
    folder, _, name = entry.path.rpartition(b"/")
    at = _enter(target, folder)
    times = (when_ns, when_ns)
    if stat.S_ISLNK(entry.mode):
        os.symlink(data, name, dir_fd=at)
        os.utime(name, ns=times, dir_fd=at, follow_symlinks=False)
        info = os.lstat(name, dir_fd=at)
    else:
        mode = 0o777 if entry.mode & 0o100 else 0o666  # the user's umask decides the rest
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=at)
        try:
            if data and (written := os.write(fd, data)) < len(data):
                files.write_all(fd, data[written:])
            os.utime(fd, ns=times)
            info = os.fstat(fd)
        finally:
            os.close(fd)
    changed, modified = divmod(info.st_ctime_ns, _SECOND), divmod(info.st_mtime_ns, _SECOND)
    where = info.st_dev & _WORD, info.st_ino & _WORD
    seconds = changed[0] & _WORD, changed[1], modified[0] & _WORD, modified[1]
    indexes.STAT.pack_into(
        target.index, entry.place, *seconds, *where, entry.mode, info.st_uid, info.st_gid, info.st_size & _WORD
    )


def _enter(target: _Target, folder: bytes) -> int:
    """Open a folder of a tree, and make it first, where that was not done for the file before."""
    if target.at >= 0 and folder == target.folder:
        return target.at
    at, way = os.dup(target.top), b""
    try:
        for name in folder.split(b"/") if folder else ():
            way = way + b"/" + name if way else name
            if way not in target.made:
                os.mkdir(name, 0o777, dir_fd=at)
                target.made.add(way)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = inner
    except BaseException:
        os.close(at)
        raise
    if target.at >= 0:
        os.close(target.at)
    target.folder, target.at = folder, at
    return at


def _write_index(target: _Target, cache: bytes) -> None:
    target.index += cache
    target.index += hashlib.sha1(target.index, usedforsecurity=False).digest()
    indexes.put(target.admin / "index", target.index)
