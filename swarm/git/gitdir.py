"""Read and repair git's own folder with plain file operations.

A git that was killed in the middle of ``worktree add`` can leave a repository in which *every* git
command dies (an empty ``commondir``).  So the first part of every recovery may not run git; it is here.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.running import others
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.project.layout import HEADS
from swarm.project.model import AdminDir, WorktreeEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIMIT = 1 << 16
#: How much is kept of what is larger.
_SHOWN = 1 << 12
_PACKED_LIMIT = 4 << 20
_OBJECT = r"[0-9a-f]{40}|[0-9a-f]{64}"
_PACKED = rb"(?:#[^\n]*\n)?(?:[0-9a-f]{40}(?:[0-9a-f]{24})? refs/[^\n]+\n(?:\^[0-9a-f]{40,64}\n)?)*+"

#: What lies in a git folder while something is half done there.
OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "sequencer": "cherry-pick or revert sequence",
}


def _text(path: Path) -> str | None:
    try:
        return os.fsdecode(files.read_small(path, _LIMIT)).strip("\n")
    except OSError:
        return None


def read_admin(path: Path) -> AdminDir:
    """Read the existing parts of a worktree's admin folder."""
    return AdminDir(
        name=path.name,
        path=path,
        gitdir=_text(path / "gitdir") or "",
        commondir=_text(path / "commondir") or "",
        head=full_head_of(path),
        locked=_lock_reason(path / "locked"),
    )


def _lock_reason(path: Path) -> str | None:
    """Return why a worktree is locked; None if it is not. Of a huge reason it is the beginning: git takes any."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        data = file.read(_LIMIT + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    return os.fsdecode(data if len(data) <= _LIMIT else data[:_SHOWN] + b"...").strip("\n")


def full_head_of(folder: Path) -> str:
    """Read a ``HEAD``; it may be a link, by an old way of git's to name a branch (``core.preferSymlinkRefs``)."""
    path = folder / "HEAD"
    if path.is_symlink() and (named := os.readlink(path)).startswith("refs/"):
        return f"ref: {named}"
    return _text(path) or ""


#: What the file ``HEAD`` says in a repository whose refs are in tables (reftable), for old programs.
STUB = "ref: refs/heads/.invalid"


def head_of(folder: Path) -> str:
    """Return the content of the ``HEAD`` file of a git or admin folder; empty if it is a link or not readable."""
    path = folder / "HEAD"
    return "" if path.is_symlink() else _text(path) or ""


def admin_dirs(common: Path) -> tuple[AdminDir, ...]:
    """Return every admin folder of the repository."""
    base = common / "worktrees"
    try:
        found = sorted(os.listdir(base))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(read_admin(base / name) for name in found)


def admin_of(common: Path, tree: Path) -> AdminDir | None:
    """Return the admin folder whose ``gitdir`` points at *tree*."""
    wanted = str(tree / ".git")
    pointer = pointer_of(tree)
    if pointer is not None and pointer.parent == common / "worktrees" and _text(pointer / "gitdir") == wanted:
        return read_admin(pointer)
    return next((admin for admin in admin_dirs(common) if admin.gitdir == wanted), None)


def pointer_of(tree: Path) -> Path | None:
    """Return the admin folder that the tree's ``.git`` file names; None if it is no such file."""
    path = tree / ".git"
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
    except OSError:
        return None
    text = _text(path)
    if text is None or not text.startswith("gitdir: "):
        return None
    target = Path(text.removeprefix("gitdir: "))
    return target if target.is_absolute() else Path(os.path.normpath(tree / target))


def lock_files(admin: Path) -> tuple[str, ...]:
    """Return the names of git's lock files in an admin folder: a git is at work there, or died."""
    try:
        return tuple(sorted(name for name in os.listdir(admin) if name.endswith(".lock")))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def ref_locks(common: Path, refs: Iterable[str]) -> tuple[Path, ...]:
    """Return the lock files that a change of these refs uses, and the file that is to become packed-refs.

    git refuses to write ``packed-refs.new`` over one that a killed git left: no packed ref could be
    deleted any more, by anybody.
    """
    return (*(common / f"{ref}.lock" for ref in refs), common / "packed-refs.lock", common / "packed-refs.new")


def tips(common: Path, refs: Iterable[str]) -> dict[str, str]:
    """Return the commits of the refs that are loose files; git itself reads these first."""
    found = {}
    for ref in refs:
        path = common / ref
        text = None if path.is_symlink() else _text(path)
        if text is not None and re.fullmatch(_OBJECT, text):
            found[ref] = text
    return found


def own_folder(common: Path, tree: Path) -> Path | None:
    """Return git's folder for a worktree, if git, run in that worktree, would find that folder and no other."""
    pointer = None if tree.is_symlink() else pointer_of(tree)
    if pointer is None or pointer.parent != common / "worktrees":
        return None
    return pointer if _text(pointer / "gitdir") == str(tree / ".git") else None


def entry_of(common: Path, tree: Path) -> WorktreeEntry | None:
    """Return a worktree's entry as ``git worktree list`` shows it; None where only git can tell."""
    folder = own_folder(common, tree)
    if folder is None:
        return None
    said, locked = full_head_of(folder), _lock_reason(folder / "locked")
    branch = said.removeprefix("ref: ")
    detached = branch == said
    head = said if detached else tips(common, (branch,)).get(branch, "")
    if not re.fullmatch(_OBJECT, head) or not (detached or branch.startswith(HEADS)):
        return None
    return WorktreeEntry(
        path=tree,
        head=head,
        branch="" if detached else branch.removeprefix(HEADS),
        detached=detached,
        locked=locked is not None,
        lock_reason=(locked or "").strip(),
    )


def may_configure(common: Path, branch: str) -> bool:
    """Whether the repository's own configuration may have a section for a branch; False: it certainly has none."""
    try:
        text = os.fsdecode(files.read_small(common / "config"))
    except (OSError, SwarmError):
        return True
    return branch.casefold() in text.replace("\\", "").casefold()


def refs_around(common: Path, names: Iterable[str], folder: str) -> frozenset[str] | None:
    """Return which of these refs there are, and all those below *folder*; None where only git can tell."""
    found: set[str] = set()
    if not (common / "refs" / "heads").is_dir():
        return None
    wanted = set(names)
    for name in wanted:
        path = common / name
        if path.is_symlink():
            return None
        if path.is_file():
            found.add(name)
    if not _collect(common / folder, folder, found):
        return None
    packed = _packed_names(common)  # after the files, as git does: one that is packed meanwhile is seen here
    if packed is None:
        return None
    found.update(name for name in packed if name in wanted or name.startswith(f"{folder}/"))
    return frozenset(found)


def replaces_objects(common: Path) -> bool:
    """Whether git is configured to read some objects in place of others."""
    try:
        if os.listdir(common / "refs" / "replace"):
            return True
    except OSError:
        pass
    return _is_packed(common / "packed-refs", " refs/replace/")


def _packed_names(common: Path) -> list[str] | None:
    try:
        data = files.read_small(common / "packed-refs", _PACKED_LIMIT)
    except FileNotFoundError:
        return []
    except (OSError, SwarmError):
        return None
    if not re.fullmatch(_PACKED, data):
        return None  # git will report the problem
    lines = (line.partition(b" ") for line in data.split(b"\n") if line[:1] not in (b"#", b"^"))
    return [os.fsdecode(name) for _, _, name in lines if name]


def _collect(place: Path, name: str, found: set[str]) -> bool:
    """Add the refs that are files below a folder; False if one is no plain ref."""
    try:
        entries = list(os.scandir(place))
    except (FileNotFoundError, NotADirectoryError):
        return True
    for entry in entries:
        full = f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if not _collect(Path(entry.path), full, found):
                return False
        elif not entry.name.endswith(".lock"):
            if entry.is_symlink() or not re.fullmatch(_OBJECT, _text(Path(entry.path)) or ""):
                return False
            found.add(full)
    return True


def drop_ref(common: Path, ref: str, tip: str) -> bool:
    """Delete a loose ref, with the locks that git takes for it.

    Returns:
        False if it is not so, or somebody is at work on it: ask git.
    """
    path = common / ref
    packed = common / "packed-refs"
    locks: list[Path] = []
    try:
        # The lock of packed-refs keeps everybody from packing the ref meanwhile.
        for lock in (path.with_name(f"{path.name}.lock"), packed.with_name("packed-refs.lock")):
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
            locks.append(lock)
        if tips(common, (ref,)) != {ref: tip} or _is_packed(packed, ref):
            return False
        with contextlib.suppress(OSError):  # git does not mind either when a log stays
            (common / "logs" / ref).unlink()
        os.unlink(path)
    except OSError:
        return False
    finally:
        for lock in locks:
            os.unlink(lock)
    return True


def _is_packed(packed: Path, ref: str) -> bool:
    try:
        return os.fsencode(ref) in packed.read_bytes()
    except FileNotFoundError:
        return False


def live_git(common: Path, root: Path) -> bool:
    """Whether some git process seems to be at work in this repository (Linux; elsewhere: unknown, so True)."""
    return not others.CAN_SEE or any(True for _ in others.at_work(common, _trees(common, root)))


def _trees(common: Path, root: Path) -> list[str]:
    """Return the working trees of a repository: a git in one that lies elsewhere works in the same repository."""
    return [str(root), *(os.path.dirname(admin.gitdir) for admin in admin_dirs(common) if admin.gitdir)]


def collector(common: Path, root: Path) -> int:
    """Return a process that is removing objects which nothing names; 0 where there is none.

    A ``git gc`` has left a note of itself.  A ``git prune`` or ``git repack`` leaves none, and is seen on Linux.
    """
    return _noted_gc(common) or others.collecting(common, _trees(common, root))


def _noted_gc(common: Path) -> int:
    """Return the process of a running ``git gc``; 0 without one."""
    words = (_text(common / "gc.pid") or "").split()
    if not words or not words[0].isdigit():
        return 0
    try:
        os.kill(int(words[0]), 0)
    except ProcessLookupError:
        return 0
    except (PermissionError, OverflowError):
        pass  # it is another user's
    return int(words[0])


def remove_stale_locks(common: Path, root: Path, locks: Iterable[Path], since_ns: int, aside: Path) -> list[str]:
    """Move away lock files that a killed git of our operation left; return the locks that block.

    A lock is ours if the operation named it before it began, when the lock was not there, and the file is no older.
    Also no git may run in the repository any more.  swarm's own inherit the repository lock, which the caller holds;
    the user's are looked for.  A lock that other programs use, too, must also stay unchanged for a moment: a program
    not called git would be done with it.  Locks of ``refs/swarm/`` need not be named, as only swarm makes refs there.
    """
    kept: list[str] = []
    shared: dict[Path, os.stat_result] = {}
    stale: list[Path] = []
    for lock in (*locks, *_own_ref_locks(common)):
        try:
            info = os.lstat(lock)
        except (FileNotFoundError, NotADirectoryError):
            continue
        # File times come from a coarser clock than time_ns; allow for it.
        if info.st_mtime_ns < since_ns - 2_000_000_000 or _git_stays(common, root, lock):
            kept.append(str(lock))
        elif lock.is_relative_to(common / "refs" / "heads"):
            stale.append(lock)
        else:
            shared[lock] = info
    moving = _moving(shared)
    for lock in (*stale, *(lock for lock in shared if lock not in moving)):
        files.make_folders(aside)
        files.rename_if_there(lock, aside / f"lock-{time.time_ns()}-{lock.name}")
    return [*kept, *map(str, moving)]


def _own_ref_locks(common: Path) -> list[Path]:
    return [
        Path(where) / name
        for where, _, names in os.walk(common / "refs" / "swarm")
        for name in names
        if name.endswith(".lock")
    ]


def _moving(locks: dict[Path, os.stat_result]) -> set[Path]:
    """Return the locks in use: they change within a moment. A lock that disappears is unused."""
    found: set[Path] = set()
    deadline = time.monotonic() + 0.3
    while locks and time.monotonic() < deadline:
        for lock, seen in locks.items():
            try:
                now = os.lstat(lock)
            except FileNotFoundError:
                continue
            if (now.st_ino, now.st_mtime_ns, now.st_size) != (seen.st_ino, seen.st_mtime_ns, seen.st_size):
                found.add(lock)
        time.sleep(0.02)
    return found


def _git_stays(common: Path, root: Path, lock: Path) -> bool:
    """Wait for a live git to end or release the lock; False once no process owns the lock."""
    deadline = time.monotonic() + 2.0
    while live_git(common, root):
        if time.monotonic() > deadline:
            return True
        if not files.exists(lock):
            return False
        time.sleep(0.02)
    return False


def prune_empty_ref_folders(common: Path, prefix: str) -> None:
    """Remove the empty folders that deleted refs leave below ``refs/`` and ``logs/``."""
    for top in (common / "refs" / "swarm", common / "refs" / "heads" / prefix):
        for base in (top, common / "logs" / top.relative_to(common)):
            _prune(base)


def _prune(folder: Path) -> None:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            _prune(Path(entry.path))
    files.remove_empty(folder)
