"""The private git folder of an agent: it lies over the repository's in the box, and shares its objects read-only.

    git/                       in the box at the place of the repository's; the agent may do to it what it likes
      config  packed-refs      copies: without secrets; heads, tags and remote branches as they are now
      objects/info/alternates  names the repository's objects, which the box shows at `values.STORES`
      hooks/  info/  shallow   copies
      worktrees/<own>/         HEAD, index and what else git has of this worktree: copies
    home/                      the agent's home
    io/                        the sockets that it may use; in the box at `values.IO`
    empty                      hides files that name further objects
    tree                       the path of the worktree; the box does not show it. A worker's box has no git and no
                               tree of its own: it shows those of its lead's
    taken                      the tip of the branch that was taken in last; the box does not show it

The host never runs git here.  What is committed inside is taken in by `intake.py`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.git.errors import GitBroken
from swarm.kit import files
from swarm.kit.errors import EnvironmentProblem
from swarm.project.layout import BOXED_TREE, HEADS
from swarm.sandbox import machine, settings
from swarm.sandbox.values import STORES, Box, PrivateGit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.git.running.runner import GitRunner

#: The file with the tip that was taken in last.
TAKEN = "taken"
#: The folder of the sockets that an agent may use.
IO = "io"
#: Of git's folder for a worktree; all else is half-done work, which a new worktree has not.
_OF_WORKTREE = ("HEAD", "gitdir", "commondir", "index")
#: Refs that an agent sees as they are when its box is made.
_SEEN = ("refs/heads", "refs/tags", "refs/remotes")
_INDEX_LIMIT = 1 << 30
#: The copied index has the owner of each file, who is another one in the box: for git every file would be changed.
_STAT = b"[core]\n\tcheckStat = minimal\n\ttrustctime = false\n"
_HOOK_LIMIT = 4 << 20
#: So deep does git itself follow one store to the next.
_DEPTH = 5
#: How commands run in a box by swarm, and by nobody's settings.
_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}


def make(git: GitRunner, tree: Path, common: Path, base: Path) -> None:
    """Make the private git folder and the home of a worktree's agent in the new folder *base*.

    Raises:
        GitBroken: git does not know the worktree.
        EnvironmentProblem: its repository is of a kind that swarm cannot put into a box.
    """
    admin = gitdir.own_folder(common, tree)
    if admin is None:
        raise GitBroken(f"cannot make a box for {tree}: it is no worktree of this repository")
    if files.exists(common / "reftable"):
        raise EnvironmentProblem(f"cannot make a box for {tree}: the repository keeps its refs as a reftable")
    folder = base / "git"
    for inner in (
        "objects/info",
        "objects/pack",
        "refs/heads",
        "refs/tags",
        "info",
        "hooks",
        f"worktrees/{admin.name}",
    ):
        files.make_folders(folder / inner, 0o700)
    make_home(git, base)
    files.write_new(base / BOXED_TREE, os.fsencode(tree))
    named = "".join(f"{STORES}/{number}\n" for number, _ in enumerate(stores(common)))
    files.write_new(folder / "objects" / "info" / "alternates", named.encode("ascii"))
    files.write_new(folder / "config", settings.copied(git, common / "config") + _STAT)
    files.write_new(folder / "HEAD", files.read_small(common / "HEAD"))
    files.write_new(folder / "packed-refs", _refs(git))
    for name in ("shallow", "info/exclude", "info/attributes"):
        _copy(common / name, folder / name)
    _copy_hooks(common / "hooks", folder / "hooks")
    for name in (*_OF_WORKTREE, "info/sparse-checkout", *_shared_indexes(admin)):
        _copy(admin / name, folder / "worktrees" / admin.name / name, _INDEX_LIMIT)
    if files.exists(admin / "config.worktree"):
        own = settings.copied(git, admin / "config.worktree")
        files.write_new(folder / "worktrees" / admin.name / "config.worktree", own)
    head = gitdir.full_head_of(admin).removeprefix("ref: ")
    tip = git.ask("rev-parse", "--verify", f"{head}^{{commit}}", what=f"cannot make a box for {tree}")
    files.write_new(base / TAKEN, tip, 0o600)


def make_home(git: GitRunner, base: Path) -> None:
    """Make the home of an agent in the new folder *base*, and what else its box has that is not git's."""
    for name in ("home", IO):
        files.make_folders(base / name, 0o700)
    files.write_new(base / "empty", b"", 0o400)
    files.write_new(base / "home" / ".gitconfig", settings.identity(git), 0o600)


def git_folder(tree: Path, base: Path) -> Path:
    """Return the private git folder of an agent; of one in the worktree of its lead it is that of the lead.

    Raises:
        EnvironmentProblem: there is none.
    """
    own = base / "git"
    if files.exists(own):
        return own
    for noted in base.parents[2].glob(f"*/box/*/{BOXED_TREE}"):
        with contextlib.suppress(OSError):
            if noted.read_bytes() == os.fsencode(tree):
                return noted.parent / "git"
    raise EnvironmentProblem(f"cannot make the box of {tree}: it has no private git folder")


def box_of(tree: Path, common: Path, base: Path) -> Box:
    """Return the box in which swarm looks at a worktree, and in which its agent works.

    Raises:
        EnvironmentProblem: what must not be exchanged was exchanged.
    """
    folder = git_folder(tree, base)
    for path, kind in ((folder, stat.S_ISDIR), (base / "home", stat.S_ISDIR), (tree / ".git", stat.S_ISREG)):
        if not kind(os.lstat(path).st_mode):
            raise EnvironmentProblem(f"cannot make the box of {tree}: {path} is not what swarm made")
    found = stores(common)
    hidden = tuple(str(one / "info/alternates") for one in found if files.exists(one / "info/alternates"))
    git = PrivateGit(str(common), str(folder), tuple(map(str, found)), hidden, str(base / "empty"))
    return Box(str(tree), str(base / "home"), machine.system(), git, env=_ENV)


def folder_box(folder: Path, base: Path) -> Box:
    """Return the box of a program that works in a folder, without a repository.

    Raises:
        EnvironmentProblem: what must not be exchanged was exchanged.
    """
    for path in (folder, base / "home"):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise EnvironmentProblem(f"cannot make the box of {folder}: {path} is not what swarm made")
    return Box(str(folder), str(base / "home"), machine.system(), env=_ENV)


def stores(common: Path) -> tuple[Path, ...]:
    """Return every folder from which the repository takes objects, its own first."""
    found: dict[Path, None] = {}
    _collect(common / "objects", found, 0)
    return tuple(found)


def _collect(store: Path, found: dict[Path, None], depth: int) -> None:
    if store in found or depth > _DEPTH or not store.is_dir():
        return
    found[store] = None
    with contextlib.suppress(FileNotFoundError):
        for line in files.read_small(store / "info" / "alternates").splitlines():
            if line and not line.startswith((b"#", b'"')):
                _collect(Path(os.path.normpath(store / os.fsdecode(line))), found, depth + 1)


def _refs(git: GitRunner) -> bytes:
    """Return the refs in the form of ``packed-refs``."""
    return git.ask("for-each-ref", "--format=%(objectname) %(refname)", *_SEEN)


def _shared_indexes(admin: Path) -> Iterator[str]:
    return (name for name in os.listdir(admin) if name.startswith("sharedindex."))


def _copy(source: Path, target: Path, limit: int = 1 << 24) -> None:
    """Copy a file, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        data = files.read_small(source, limit)
        files.make_folders(target.parent, 0o700)
        files.write_new(target, data)


def _copy_hooks(source: Path, target: Path) -> None:
    """Copy the project's hooks: they run for the agent's commits, in the box."""
    try:
        found = [entry for entry in os.scandir(source) if entry.is_file() and not entry.name.endswith(".sample")]
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in found:
        mode = 0o755 if os.access(entry.path, os.X_OK) else 0o644
        files.write_new(target / entry.name, files.read_small(Path(entry.path), _HOOK_LIMIT), mode)


def branch_of(tree: Path, common: Path) -> str:
    """Return the branch that a worktree has on the host; in the box the agent may have checked out another one.

    Raises:
        GitBroken: it has none.
    """
    admin = gitdir.own_folder(common, tree)
    head = gitdir.head_of(admin) if admin is not None else ""
    if not head.startswith(f"ref: {HEADS}"):
        raise GitBroken(f"cannot take in the work of {tree}: no branch is checked out there")
    return head.removeprefix("ref: ")
