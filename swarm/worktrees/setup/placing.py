"""Copy or link files of the main checkout into a fresh worktree.

Only what git does not track is given; a file that is there already is never written over.  Copies share
their blocks with the original where the file system can do that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.commandline import is_literal
from swarm.kit.errors import SwarmError
from swarm.machine import own
from swarm.worktrees.setup.setup_values import Selected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

#: ``FICLONE`` of Linux: share the blocks of another file.
_CLONE = 0x40049409
_NO_CLONE = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}
_AT_ONCE = 1 << 27
_NOTHING = frozenset({errno.ENOENT, errno.ENOTDIR})


# --- find ----------------------------------------------------------------------------------------


def find(top: Path, pattern: str, hidden: Collection[str]) -> Iterator[str]:
    """Give the paths below *top* that a pattern means; ``*`` is within a folder, ``**`` any folders.

    Folders that are links, repositories of their own or below *hidden* are not entered.
    """
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    yield from dict.fromkeys(_find(top, "", parts, hidden))


def _find(top: Path, folder: str, parts: Sequence[str], hidden: Collection[str]) -> Iterator[str]:
    if not parts:
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        yield from _find(top, folder, rest or ("*",), hidden)
        for name in _names(top, folder):
            inner = _join(folder, name)
            if _may_enter(top, inner, hidden):
                yield from _find(top, inner, parts, hidden)
        return
    names = [first] if is_literal(first) else [name for name in _names(top, folder) if fnmatchcase(name, first)]
    for name in names:
        path = _join(folder, name)
        if not rest:
            if _is_open(path, hidden) and os.path.lexists(top / path):
                yield path
        elif _may_enter(top, path, hidden):
            yield from _find(top, path, rest, hidden)


def files_below(top: Path, path: str, hidden: Collection[str]) -> Iterator[str]:
    """Give a file, or every file and link below a folder."""
    try:
        mode = os.lstat(top / path).st_mode
    except OSError:
        return  # it went while we looked
    if not stat.S_ISDIR(mode):
        yield path
    elif _may_enter(top, path, hidden):
        for name in _names(top, path):
            yield from files_below(top, _join(path, name), hidden)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _names(top: Path, folder: str) -> list[str]:
    try:
        return sorted(os.listdir(top / folder))
    except OSError as error:
        if error.errno in _NOTHING:
            return []
        raise


def _is_open(path: str, hidden: Collection[str]) -> bool:
    return path.split("/", maxsplit=1)[0].casefold() != ".git" and not any(
        path == one or path.startswith(f"{one}/") for one in hidden
    )


def _may_enter(top: Path, path: str, hidden: Collection[str]) -> bool:
    try:
        info = os.lstat(top / path)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and _is_open(path, hidden) and not os.path.lexists(top / path / ".git")


def sort_out(top: Path, paths: Sequence[str]) -> Selected:
    """Leave out entries that cannot be copied or linked: links out of the repository, pipes, sockets."""
    good, problems = [], []
    for path in paths:
        why = _why_not(top, path)
        if why:
            problems.append(f"{path} {why}")
        else:
            good.append(path)
    return Selected(tuple(good), problems=tuple(problems))


def _why_not(top: Path, path: str) -> str:
    mode = os.lstat(top / path).st_mode
    if stat.S_ISLNK(mode):
        return "" if _stays_inside(top, top / path) else "is a symbolic link that leads out of the repository"
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "is neither a file nor a folder"


def _stays_inside(top: Path, link: Path) -> bool:
    target = os.readlink(link)
    if os.path.isabs(target):
        return False
    root = os.path.realpath(top)
    lexical = os.path.normpath(os.path.join(root, os.path.relpath(link.parent, top), target))
    return all(one == root or one.startswith(root + os.sep) for one in (lexical, os.path.realpath(link)))


# --- give ----------------------------------------------------------------------------------------


def copy(top: Path, tree: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Copy files and links into a worktree; return the failures. Existing files stay."""
    problems = []
    clones = True
    for path in paths:
        target = tree / path
        if os.path.lexists(target):
            continue
        try:
            if not _make_parents(tree, path):
                problems.append(f"{path}: a folder on its path is not a folder in the worktree")
            elif (top / path).is_symlink():
                own.symlink(os.readlink(top / path), os.fspath(target))
            else:
                clones = _copy_file(top / path, target, clones=clones)
        except FileNotFoundError:
            problems.append(f"{path}: it is gone")
        except PermissionError as error:
            problems.append(f"{path}: {error.strerror}")
    return tuple(problems)


def link(top: Path, tree: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Put symbolic links to files and folders into a worktree; return the failures."""
    problems = []
    for path in paths:
        target = tree / path
        if not _make_parents(tree, path):
            problems.append(f"{path}: a folder on its path is not a folder in the worktree")
        elif os.path.lexists(target):
            problems.append(f"{path}: the worktree has one of its own")
        else:
            own.symlink(os.path.relpath(top / path, target.parent), os.fspath(target))
    return tuple(problems)


def _make_parents(tree: Path, path: str) -> bool:
    """Make the folders of a path; False where one is a link or a file, through which nothing is written."""
    folder = tree
    for part in path.split("/")[:-1]:
        folder /= part
        try:
            own.mkdir(os.fspath(folder))
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                return False
    return True


def _copy_file(source: Path, target: Path, *, clones: bool) -> bool:
    """Copy content, mode and time of a file; say whether the next one may be cloned, too."""
    read = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(read)
        if not stat.S_ISREG(info.st_mode):
            return clones
        write = own.open(os.fspath(target), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            clones = clones and _clone(read, write)
            if not clones:
                _copy_bytes(read, write)
            os.fchmod(write, stat.S_IMODE(info.st_mode) & 0o777)
            os.utime(write, ns=(info.st_atime_ns, info.st_mtime_ns))
        finally:
            os.close(write)
    finally:
        os.close(read)
    return clones


def _clone(read: int, write: int) -> bool:
    import fcntl

    try:
        fcntl.ioctl(write, _CLONE, read)
    except OSError as error:
        if error.errno in _NO_CLONE:
            return False
        raise
    return True


def _copy_bytes(read: int, write: int) -> None:
    """Let the kernel copy where it can."""
    if hasattr(os, "copy_file_range"):
        with contextlib.suppress(OSError):  # between some file systems it cannot: then from where it got
            while os.copy_file_range(read, write, _AT_ONCE):
                pass
    with open(read, "rb", closefd=False) as source, open(write, "wb", closefd=False) as target:
        shutil.copyfileobj(source, target, 1 << 20)


def signature(path: Path) -> str:
    """Return a file's signature, to detect changes: the content of small files, the ``stat`` of others."""
    from hashlib import sha256

    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            return f"link {os.readlink(path)}"
        if not stat.S_ISREG(info.st_mode):
            return ""
        if info.st_size > 1 << 20:
            return f"stat {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino}"
        mode = "x" if info.st_mode & 0o100 else "-"
        return f"sha256 {mode} {sha256(files.read_small(path)).hexdigest()}"
    except (OSError, SwarmError):  # whatever it is now, it is another
        return ""
