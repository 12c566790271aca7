"""Find the repository around a folder."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.git import gitdir
from swarm.git.errors import BareRepository, GitBroken, GitFailed, NotARepo
from swarm.git.running.explain import explain
from swarm.git.running.runner import GitRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


#: Where git's folder would be outside of a repository; it is never made.
NO_GIT = ".no-git"
_ABOUT = ("--is-bare-repository", "--is-inside-work-tree", "--show-object-format")
_HEAD = ("HEAD^{commit}", "HEAD^{tree}")
_WHERE = ("--show-toplevel", "--git-common-dir")


class Place(NamedTuple):
    """Where a repository is.

    Attributes:
        root: the main checkout, also when asked from a linked worktree.
        common: the git directory that all worktrees share.
        top: the work tree that was asked from.
        object_format: ``sha1`` or ``sha256``.
        commit: what was checked out in *top* then; empty for none, or where git cannot tell.
        tree: its tree.
    """

    root: Path
    common: Path
    top: Path
    object_format: str
    commit: str = ""
    tree: str = ""


def discover(start: Path, environ: Mapping[str, str], meanwhile: Callable[[], object] = lambda: None) -> Place:
    """Find the repository around *start*.

    Args:
        meanwhile: done while git looks.

    Raises:
        NotARepo, BareRepository, GitBroken, RepositoryOwner, GitMissing.
    """
    if not is_folder(start):
        raise NotARepo(f"cannot use {start}: there is no such folder", hint="check the path after -C")
    git = GitRunner(start, environ=environ, timeout=30)
    asked = git.begin("rev-parse", *_ABOUT, *_HEAD, *_WHERE)
    asked.use_the_time(meanwhile)
    code, out, err = asked.outcome()
    head = os.fsdecode(out).split("\n", 5)[3:5] if code == 0 else ["", ""]
    if code == 0:
        out = b"\n".join((*out.split(b"\n", 3)[:3], out.split(b"\n", 5)[5]))
    else:  # most often there is no commit yet
        code, out, err = git.attempt("rev-parse", *_ABOUT, *_WHERE)
    lines = os.fsdecode(out).split("\n", 3)
    if code != 0:
        raise _why_no_repository(start, lines, code, err.decode("utf-8", "replace").strip())
    if lines[3].count("\n") == 2:
        top_text, common_text = lines[3].split("\n")[:2]
    else:  # a path with a newline in it: ask for one at a time
        top_text = os.fsdecode(git.run("rev-parse", "--show-toplevel").removesuffix(b"\n"))
        common_text = os.fsdecode(git.run("rev-parse", "--git-common-dir").removesuffix(b"\n"))
    top, common = Path(top_text), _absolute(common_text, start)
    return Place(_main_checkout(top, common, git), common, top, lines[2], *head)


def is_folder(path: Path) -> bool:
    """Whether there is a folder; a path that cannot be is none."""
    try:
        return path.is_dir()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


def _why_no_repository(start: Path, printed: Sequence[str], code: int, text: str) -> Exception:
    if printed[0] == "true":
        return BareRepository(f"cannot work in {start}: the repository is bare, it has no work tree")
    if "must be run in a work tree" in text:
        return NotARepo(f"cannot work in {start}: it is inside a git directory, not in a work tree")
    error = explain(f"cannot work in {start}", code, text)
    if type(error) is NotARepo and any((folder / ".git").exists() for folder in (start, *start.parents)):
        return GitBroken(f"cannot work in {start}: git does not recognise the repository there", details=text)
    if type(error) is NotARepo:
        return NotARepo(f"not a git repository: {start}", details=text)
    if type(error) is GitFailed:
        return GitBroken(error.message, details=text)
    return error


def _path(printed: bytes, start: Path) -> Path:
    # git ends its answer with one newline; the path itself may hold more of them.
    return _absolute(os.fsdecode(printed.removesuffix(b"\n")), start)


def _absolute(path: str, start: Path) -> Path:
    # Real paths, as git writes them into the worktrees' pointers: ``.git`` itself may be a symbolic link.
    return Path(os.path.realpath(os.path.join(os.path.realpath(start), path)))


def _main_checkout(top: Path, common: Path, git: GitRunner) -> Path:
    """Return the main work tree of the repository whose shared git directory is *common*."""
    if gitdir.pointer_of(top) is None or _path(git.run("rev-parse", "--git-dir"), git.cwd) == common:
        return top  # asked from the main work tree itself, also of a submodule or a separate git dir
    code, out, _ = git.attempt("config", "--file", str(common / "config"), "core.worktree")
    if code == 0:
        return Path(os.path.normpath(common / os.fsdecode(out.removesuffix(b"\n"))))
    if common.name == ".git":
        code, out, _ = git.attempt("config", "--file", str(common / "config"), "--type=bool", "core.bare")
        if out.strip() != b"true":
            return common.parent
    raise BareRepository(f"cannot work in {top}: its repository {common} has no main work tree")
