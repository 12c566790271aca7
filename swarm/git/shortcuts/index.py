"""Patch the index of a fresh worktree so that the first status opens no file.

This is what ``git update-index --refresh`` would do after the times were changed, without reading
every file again: git has just written these files and their index, so only the times have to be put
right in both.  Anything unusual is left to git.

    "DIRC" version count │ entry: ctime mtime dev ino mode uid gid size oid flags path NUL… │ … │ extensions │ checksum
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from typing import TYPE_CHECKING

from swarm.kit import files as fsio
from swarm.machine import own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEAD = struct.Struct(">4sLL")
STAT = struct.Struct(">10L")
_TIMES = struct.Struct(">4L")
_FLAGS = struct.Struct(">H")
EXTENDED, STAGE, _NAME_LENGTH = 0x4000, 0x3000, 0x0FFF
LIMIT = 1 << 30
#: Where the entries begin.
START = _HEAD.size
WORD = 0xFFFFFFFF
_SECOND = 10**9
#: File times come from the kernel's tick; two acts within one may carry times in the wrong order.
CLOCK_STEP_NS = 20_000_000
#: Two zero bytes and the kind of an entry that is a submodule.
_GITLINK = (0o160000).to_bytes(4, "big")
#: What may follow the entries: git's caches, which hold no times.
_HARMLESS = frozenset({b"TREE", b"REUC", b"EOIE", b"IEOT"})


def backdate(tree: Path, index: Path, when_ns: int, *, sha256: bool = False) -> bool:
    """Give every tracked file of *tree* the time *when_ns*, in the file system and in the index.

    Files that are not as git wrote them are left as they are.

    Returns:
        False if the index is of a kind that this cannot do, or git is at work on it.
    """
    size = 32 if sha256 else 20
    data = bytearray(fsio.read_small(index, LIMIT))
    files = _files(data, size)
    if files is None:
        return False
    top = own.folder(os.fspath(tree))
    try:
        for place, path in files:
            _backdate_one(data, place, path, top, when_ns)
    finally:
        os.close(top)
    data[-size:] = _checksum(data, size)
    return put(index, data, stat.S_IMODE(os.stat(index).st_mode))


def put(index: Path, data: bytearray, mode: int | None = None) -> bool:
    """Put a new index in place as git does it, later than the files that it tells of.

    Args:
        mode: its permissions; else what the user's umask gives.

    Returns:
        False if git is at work on it.
    """
    lock = index.with_name("index.lock")
    try:
        fd = own.open(os.fspath(lock), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return False
    try:
        fsio.write_all(fd, data)
        if mode is not None:
            os.fchmod(fd, mode)
        # Certainly later than the files, so that git does not take them for written after the index.
        later_ns = os.fstat(fd).st_mtime_ns + CLOCK_STEP_NS
        os.utime(fd, ns=(later_ns, later_ns))
    finally:
        os.close(fd)
    return fsio.rename_if_there(lock, index)


def _backdate_one(data: bytearray, place: int, path: bytes, top: int, when_ns: int) -> None:
    try:
        found = os.lstat(path, dir_fd=top)
        if found.st_mtime_ns == when_ns or not _is_as_written(STAT.unpack_from(data, place), found):
            return
        os.utime(path, ns=(when_ns, when_ns), dir_fd=top, follow_symlinks=False)
        changed_ns = os.lstat(path, dir_fd=top).st_ctime_ns
    except OSError:
        return  # left out by a sparse checkout: git will see
    (changed, changed_rest), (when, when_rest) = divmod(changed_ns, _SECOND), divmod(when_ns, _SECOND)
    _TIMES.pack_into(data, place, changed & WORD, changed_rest, when & WORD, when_rest)


def _is_as_written(entry: tuple[int, ...], found: os.stat_result) -> bool:
    _, _, seconds, rest, _, inode, mode, _, _, size = entry
    return (seconds, rest, inode, stat.S_IFMT(mode), size) == (
        found.st_mtime_ns // _SECOND & WORD,
        found.st_mtime_ns % _SECOND,
        found.st_ino & WORD,
        stat.S_IFMT(found.st_mode),
        found.st_size & WORD,
    )


def _files(data: bytearray, size: int) -> list[tuple[int, bytes]] | None:
    """Return (place, path) of every plain file and link in the index; None if it is of another kind."""
    cuts = entries(data, size)
    if cuts is None:
        return None
    found: list[tuple[int, bytes]] = []
    end = START
    for place, flags, path, end in cuts:  # noqa: B007  # the last end is used
        kind = stat.S_IFMT(STAT.unpack_from(data, place)[6])
        if not flags & (EXTENDED | STAGE) and kind in (stat.S_IFREG, stat.S_IFLNK):
            found.append((place, path))
    return found if only_harmless(data, end, len(data) - size) else None


def entries(data: bytes | bytearray, size: int) -> Iterator[tuple[int, int, bytes, int]] | None:
    """Give (place, flags, path, end) of every entry; None if it is no index of a known version.

    Args:
        size: of an object id.
    """
    if len(data) < _HEAD.size + size or _checksum(data, size) != data[-size:]:
        return None
    magic, version, count = _HEAD.unpack_from(data)
    return _cut(data, size, count) if magic == b"DIRC" and version in (2, 3) else None


def listed(path: Path, size: int) -> list[tuple[str, str, str, str]] | None:
    """Return (mode, object, stage, path) of every entry, as git lists them; None if the index is of no plain kind."""
    data = fsio.read_small(path, LIMIT)
    cuts = entries(data, size)
    if cuts is None:
        return None
    found, end = [], START
    for place, flags, name, end in cuts:  # noqa: B007  # the last end is used
        mode = int.from_bytes(data[place + 24 : place + 28], "big")
        oid = data[place + STAT.size : place + STAT.size + size].hex()
        found.append((f"{mode:o}", oid, str((flags & STAGE) >> 12), os.fsdecode(name)))
    return found if only_harmless(data, end, len(data) - size) else None


def may_hold_gitlinks(index: Path) -> bool:
    """Whether a submodule may be in an index: one has no entry without these bytes; where another part is, it may."""
    try:
        data = fsio.read_small(index, LIMIT)
    except FileNotFoundError:
        return False
    return _GITLINK in data or b"link" in data


def objects_named(data: bytes, size: int) -> list[str]:
    """Return the objects that a damaged index names, up to where it cannot be read any more.

    Args:
        size: of an object id.
    """
    found: list[str] = []
    with contextlib.suppress(struct.error, ValueError):  # it ends too early
        magic, version, count = _HEAD.unpack_from(data)
        place = START
        for _ in range(count if magic == b"DIRC" and version in (2, 3, 4) else 0):
            name = place + STAT.size + size + _FLAGS.size
            (flags,) = _FLAGS.unpack_from(data, name - _FLAGS.size)
            found.append(data[place + STAT.size : place + STAT.size + size].hex())
            name += 2 if flags & EXTENDED else 0
            end = data.index(0, name if version < 4 else _behind_number(data, name))
            place = end + 1 if version == 4 else place + ((end - place + 8) & ~7)
    return found


def _behind_number(data: bytes, place: int) -> int:
    """Return where a number of several bytes ends: all but the last have their highest bit set."""
    while place < len(data) and data[place] & 0x80:
        place += 1
    return place + 1


def _cut(data: bytes | bytearray, size: int, count: int) -> Iterator[tuple[int, int, bytes, int]]:
    place = START
    for _ in range(count):
        name = place + STAT.size + size + _FLAGS.size
        (flags,) = _FLAGS.unpack_from(data, name - _FLAGS.size)
        if flags & EXTENDED:
            name += 2
        length = flags & _NAME_LENGTH
        end = name + length if length < _NAME_LENGTH else data.index(0, name)
        after = place + ((end - place + 8) & ~7)  # at least one NUL, and whole words of eight
        yield place, flags, bytes(data[name:end]), after
        place = after


def only_harmless(data: bytes | bytearray, place: int, end: int) -> bool:
    """Whether nothing but git's caches follows the entries of an index."""
    while place < end:
        if bytes(data[place : place + 4]) not in _HARMLESS:
            return False
        place += 8 + int.from_bytes(data[place + 4 : place + 8], "big")
    return place == end


def _checksum(data: bytes | bytearray, size: int) -> bytes:
    import hashlib

    kind = hashlib.sha256 if size > 20 else hashlib.sha1  # the length is the kind
    return kind(memoryview(data)[:-size], usedforsecurity=False).digest()
