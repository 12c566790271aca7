"""The pool: worktrees without work, which the next start takes instead of new ones.

    cleanup:  rename away ──► look again ──► every file is the blob that its index names ──► park, by a rename
    start:    rename back, another ``.git``, ``git status`` ──► as it was parked? ──► reset to the commit
    drain:    rename into the trash, as an operation that is over: looked at again, and deleted

A folder of the pool has the name of an operation, and is what the trash of one is: a note, a tree, and git's folder
for it.  It counts as soon as its tree is there, which comes last.
"""

from __future__ import annotations

import os
import re
import stat
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.git.content.blobs import name_of as blob_of
from swarm.git.content.walk import walk
from swarm.git.shortcuts import index
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.kit.host import processes_in
from swarm.machine import locks, own
from swarm.project import codec
from swarm.project.world import new_operation_id

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from swarm.git.content.walk import Walk
    from swarm.project.layout import Layout

#: The journal's entry of an operation that is over, in its trash; and of one parked worktree.
NOTE = "operation.json"
_OPERATION = re.compile(r"\d{8}T\d{6}-\d{3}[0-9a-f]{8}")
_LIMIT = 64 << 20
_DIGITS = 40
#: How long another process may take to park what it has begun with, and how often it is looked at, in seconds.
_PATIENCE, _LOOK_AGAIN = 60.0, 0.005


class Parked(NamedTuple):
    """A worktree in the pool.

    Attributes:
        name: of its folder in the pool.
        item: what the cleanup wrote down about it.
        content: the tree of the commit that it has.
        inode: of its folder, which a rename does not change.
        bits: its permission bits, which show the user's umask.
        size: of all its files.
        parked_ms: when, in milliseconds since 1970.
    """

    name: str
    folder: Path
    item: dict[str, Any]
    content: str
    inode: int
    bits: int
    size: int
    parked_ms: int

    @property
    def tree(self) -> Path:
        """Where its files are; while it is being taken they are elsewhere."""
        return self.folder / f"{name_of(self.item)}.tree"

    @property
    def own_index(self) -> Path:
        """The index of its files."""
        return self.folder / f"{name_of(self.item)}.admin" / "index"

    @property
    def checked(self) -> Path:
        """The mark that a taken tree was looked at: no work is in it, so it need not come back."""
        return self.folder / "checked"


def name_of(item: dict[str, Any]) -> str:
    """Return the first part of the names that belong to a removed worktree, in the trash and in the pool."""
    return f"{item['agent']}-{item['session']}"


def is_name(text: str) -> bool:
    """Whether a text is the id of an operation."""
    return _OPERATION.fullmatch(text) is not None


# --- look ---------------------------------------------------------------------------------------


def parked(layout: Layout) -> list[Parked]:
    """Return the worktrees in the pool, oldest first."""
    return [one for name in _names(layout) if (one := find(layout, name)) is not None and files.is_folder(one.tree)]


def find(layout: Layout, name: str) -> Parked | None:
    """Return what a folder of the pool tells of its worktree, which may be on its way out; None without a note."""
    folder = layout.pool / name
    try:
        record = codec.decode(files.read_small(folder / NOTE, _LIMIT), str(folder / NOTE))
        (item,) = record["targets"]
        facts = record["inode"], record["bits"], record["size"], record["parked_ms"]
        return Parked(name, folder, item, item["park"]["content"], *facts)
    except (OSError, SwarmError, KeyError, ValueError, TypeError):
        return None


def _names(layout: Layout) -> list[str]:
    try:
        return sorted(filter(is_name, own.listdir(os.fspath(layout.pool))))
    except OSError:
        return []  # no folder, or one that is not ours


# --- park ---------------------------------------------------------------------------------------


def park(layout: Layout, trash: Path, record: dict[str, Any]) -> None:
    """Park the worktrees of an operation that is over, as many as there is room for.

    Args:
        trash: of the operation; the caller has locked it.
        record: its journal entry; the trees were looked at once more.
    """
    files.make_private_dir(layout.pool)
    with_names = [(trash / f"{name_of(one)}.tree", one) for one in record["targets"] if one.get("park")]
    alive = processes_in([tree for tree, _ in with_names])
    lock = own.folder(os.fspath(layout.pool))
    try:
        if not locks.try_lock(lock):  # another process parks
            return
        for tree, item in with_names:
            there = parked(layout)
            found = _proved(tree, item) if len(there) < record["pool"]["most"] and not alive[tree] else None
            if found is None:
                continue
            size = sum(found.sizes.values())
            if size + sum(one.size for one in there) <= record["pool"]["size"]:
                _put(layout, trash, tree, record, item, size)
    finally:
        os.close(lock)


def _proved(tree: Path, item: dict[str, Any]) -> Walk | None:
    """Return what is in a tree if each file is the blob that its index names, and nothing else is in it."""
    own_index = tree.with_suffix(".admin") / "index"
    if not (files.is_folder(tree) and files.exists(own_index)):
        return None
    entries = index.listed(own_index, _DIGITS // 2)
    bits = stat.S_IMODE(os.stat(own_index).st_mode) | 0o111
    if (
        entries is None
        or bits != stat.S_IMODE(os.stat(tree).st_mode) | 0o111
        or any(blob_of(tree / path, _DIGITS) != oid for _, oid, _, path in entries)
    ):
        return None
    found = walk(tree)
    if found.fingerprint != item["fingerprint"] or not _is_like_new(tree, found, entries, item["park"]):
        return None
    return found


def _is_like_new(tree: Path, found: Walk, entries: Iterable[tuple[str, str, str, str]], wish: dict[str, Any]) -> bool:
    """Whether all is as in a new worktree, but for files that the next start removes or keeps."""
    modes = {path: mode for mode, _, _, path in entries}
    others = tuple(path for path in found.files if path not in modes)
    aside = tuple(f"{root}/" for root in (*wish["dropped"], *wish["kept"]))
    known = {*wish["placed"], *wish["dropped"], *wish["kept"]}
    if not all(path in known or path.startswith(aside) for path in others):
        return False
    empty = [path for path in found.empty if not f"{path}/".startswith(aside)]
    if empty or found.nested or found.bare or found.special or found.unreadable or found.owners - {os.geteuid()}:
        return False
    bits = stat.S_IMODE(os.stat(tree).st_mode)
    if any(mode != bits for path, mode in found.folders.items() if not f"{path}/".startswith(aside)):
        return False
    return all(_has_bits(found, path, mode, bits) for path, mode in modes.items())


def _has_bits(found: Walk, path: str, mode: str, bits: int) -> bool:
    """Whether a file has the permission bits of a new one, and no other name: who has that could change it."""
    if path in found.links:
        return mode == "120000"
    info = found.infos[path]
    usual = bits & (0o777 if mode == "100755" else 0o666)
    return info.st_nlink == 1 and info.st_uid == os.geteuid() and found.files[path] == usual


def _put(layout: Layout, trash: Path, tree: Path, record: dict[str, Any], item: dict[str, Any], size: int) -> None:
    name = new_operation_id()
    folder = layout.pool / name
    info = os.stat(tree)
    note = {
        "kind": "cleanup",
        "operation": name,
        "verb": "pool drain",
        "session": item["session"],
        "inode": info.st_ino,
        "bits": stat.S_IMODE(info.st_mode),
        "size": size,
        "parked_ms": time.time_ns() // 1_000_000,
        "targets": [{**item, "operation": record["operation"]}],
    }
    own.mkdir(os.fspath(folder), 0o700)
    files.write_atomic(folder / NOTE, codec.encode(note))
    files.rename_within(tree.with_suffix(".admin"), folder / f"{name_of(item)}.admin")
    files.unlink_if_there(tree / ".git")  # it names a folder of git's that another worktree may get
    files.sync_folder(folder)  # without its note nobody would know what has to be looked at
    files.rename_within(tree, folder / tree.name)
    files.sync_folder(folder)
    files.sync_folder(trash)  # or a power cut could bring the tree back there


# --- take ---------------------------------------------------------------------------------------


def choose(layout: Layout, number: int, content: str) -> tuple[str, ...]:
    """Return the names of worktrees for a start: first those that have what is wanted, then the youngest."""
    there = sorted(parked(layout), key=lambda one: (one.content != content, -one.parked_ms))
    return tuple(one.name for one in there[:number])


# --- empty --------------------------------------------------------------------------------------


def sweep(layout: Layout, *, most: int, size: int, age_ms: int) -> None:
    """Send into the trash what is too old or too much, and what is left of a worktree that was taken.

    The caller holds the lock of the repository.
    """
    if not files.is_folder(layout.pool):
        return
    there = {one.name: one for one in parked(layout)}
    torn = [] if _is_being_parked(layout) else [name for name in _names(layout) if name not in there]
    now = time.time_ns() // 1_000_000
    kept, room = 0, size
    for one in reversed(there.values()):
        room -= one.size
        if kept < most and room >= 0 and 0 <= now - one.parked_ms <= age_ms:
            kept += 1
        else:
            torn.append(one.name)
    drain(layout, torn)


def await_all(layout: Layout) -> list[str]:
    """Return the names of all worktrees in the pool, once no process parks another one."""
    until = time.monotonic() + _PATIENCE
    while files.is_folder(layout.pool) and _is_being_parked(layout) and time.monotonic() < until:
        time.sleep(_LOOK_AGAIN)
    return [one.name for one in parked(layout)]


def _is_being_parked(layout: Layout) -> bool:
    lock = own.folder(os.fspath(layout.pool))
    try:
        return not locks.try_lock(lock)
    finally:
        os.close(lock)


def drain(layout: Layout, names: Iterable[str]) -> int:
    """Send worktrees of the pool into the trash, where they are looked at again and deleted; return how many."""
    files.make_folders(layout.trash, 0o700)
    moved = sum(files.rename_within(layout.pool / name, layout.trash / name) for name in names)
    if files.is_folder(layout.pool):
        files.remove_empty(layout.pool)
    return moved
