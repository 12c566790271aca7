"""Register a worktree without running git, complete or not at all.

git writes them one by one in place, and a git beside it that reads half of them dies.  Here the admin
folder is filled elsewhere and renamed to where git looks for it.  Only for repositories that
``ordinary.py`` knows to be such; a test compares the result with git's own.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.machine import own
from swarm.project.layout import HEADS

if TYPE_CHECKING:
    from pathlib import Path

_NONE = b"0" * 40
#: How often to make the folder of all worktrees, which git removes with the last of them.
_TRIES = 5
#: Why a rename cannot be done here though git might find another way: taken, or on another disk.
_LEAVE_TO_GIT = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.EXDEV, errno.ENOSYS, errno.EINVAL})


def register(common: Path, tree: Path, *, branch: str, commit: str, reason: str, aside: Path) -> bool:
    """Register *tree* for *branch*, locked with *reason*, without files.

    Args:
        aside: an existing folder of the operation's own, in which the admin folder is made.

    Returns:
        False if its name is taken, or this cannot be done here: nothing was changed that git would mind.

    Raises:
        OSError
    """
    admin = common / "worktrees" / tree.name
    if files.exists(admin) or not _is_usual(tree.name):
        return False
    fresh = aside / f"{tree.name}.new"
    _write_admin(fresh, tree, branch, reason, _first_line(common, branch, commit))
    own.mkdir(os.fspath(tree))
    _write(tree / ".git", b"gitdir: " + os.fsencode(admin) + b"\n")
    try:
        _put(fresh, admin)
    except OSError as error:
        if error.errno not in _LEAVE_TO_GIT:
            raise
        files.unlink_if_there(tree / ".git")
        files.remove_empty(tree)
        return False
    return True


def _put(fresh: Path, admin: Path) -> None:
    """Move the admin folder to its place; a git that removes the last other worktree removes the folder above it."""
    for left in reversed(range(_TRIES)):
        files.make_folders(admin.parent)
        try:
            return files.rename_new(fresh, admin)
        except FileNotFoundError:
            if not left:
                raise
    return None


def _is_usual(name: str) -> bool:
    """Whether git would give the admin folder the tree's name; git replaces characters that refs forbid."""
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _write_admin(folder: Path, tree: Path, branch: str, reason: str, log: bytes) -> None:
    own.mkdir(os.fspath(folder))
    _write(folder / "locked", os.fsencode(reason) + b"\n")
    _write(folder / "gitdir", os.fsencode(tree / ".git") + b"\n")
    _write(folder / "HEAD", os.fsencode(f"ref: {HEADS}{branch}\n"))
    _write(folder / "commondir", b"../..\n")
    if log:
        own.mkdir(os.fspath(folder / "logs"))
        _write(folder / "logs/HEAD", log)


def _first_line(common: Path, branch: str, commit: str) -> bytes:
    """Return how HEAD's log begins; git has just written the branch's own, with the user's name and the time."""
    try:
        line = files.read_small(common / "logs" / HEADS / branch)
    except OSError:
        return b""  # no logs are wanted
    who, tab, _ = line.partition(b"\t")
    return who + b"\n" if tab and who.startswith(_NONE + b" " + commit.encode() + b" ") else b""


def note_filled(admin: Path, commit: str) -> None:
    """Leave the notes that ``git reset --hard`` leaves, with which git itself fills a new worktree."""
    oid = commit.encode()
    _write(admin / "ORIG_HEAD", oid + b"\n")
    log = admin / "logs" / "HEAD"
    if not log.is_file():
        return
    who = files.read_small(log).partition(b"\n")[0].removeprefix(_NONE + b" " + oid + b" ")
    files.append_line(log, oid + b" " + oid + b" " + who + b"\treset: moving to HEAD")


def replace_by(tree: Path, parked: Path, index: Path, admin: Path) -> bool:
    """Put another folder in the place of a worktree that is registered and has no files yet.

    Args:
        parked: the folder, without a ``.git``.
        index: that tells of its files.
        admin: git's folder for the worktree.

    Returns:
        False if that cannot be done here: nothing was changed.
    """
    if own.listdir(os.fspath(tree)) != [".git"] or files.exists(admin / "index"):
        return False
    link = files.read_small(tree / ".git")
    files.unlink_if_there(tree / ".git")
    files.remove_empty(tree)
    try:
        there = files.rename_within(parked, tree)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        there = False
    if not there:
        own.mkdir(os.fspath(tree))
    _write(tree / ".git", link)
    if there:
        files.rename_within(index, admin / "index")
    return there


def begin_again(tree: Path, admin: Path) -> None:
    """Make the folder of a registered worktree once more, after the one with its files was moved away."""
    files.unlink_if_there(admin / "index")
    own.mkdir(os.fspath(tree))
    _write(tree / ".git", b"gitdir: " + os.fsencode(admin) + b"\n")


def _write(path: Path, data: bytes) -> None:
    """Make a file as git makes it, with the user's umask."""
    fd = own.open(os.fspath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        files.write_all(fd, data)
    finally:
        os.close(fd)
