"""A stand-in git folder, for looking at a tree whose own one an agent can write.

A git folder's configuration names programs that git runs: filters, a file monitor.  An agent can write the folder
of its worktree, and those of the repositories that it keeps inside.  So swarm runs git by a folder of its own: HEAD,
refs and objects are theirs, and so are the settings that name no program.  The rest of the configuration is the
repository's, and the user's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.kit import files
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    import tempfile
    from collections.abc import Iterator

    from swarm.git.running.runner import GitRunner

#: Settings that change what git sees in a tree, and run nothing.
_HARMLESS = frozenset(
    {
        *("core.attributesfile", "core.autocrlf", "core.eol", "core.excludesfile", "core.filemode", "core.ignorecase"),
        *("core.precomposeunicode", "core.repositoryformatversion", "core.sparsecheckout", "core.sparsecheckoutcone"),
        *("core.symlinks", "extensions.objectformat", "extensions.refstorage"),
    }
)


@contextlib.contextmanager
def of_worktree(
    git: GitRunner, tree: Path, admin: Path, common: Path, *, own_index: bool = False, scratch: str = ""
) -> Iterator[dict[str, str]]:
    """Give the environment in which git works on a worktree, and runs no program that only its folder names.

    Args:
        admin: git's folder for it; that of the main checkout is the user's own, and used as it is.
        own_index: use the worktree's own index; else a copy, with its time: by that git knows what to distrust.
        scratch: a folder of the caller's for the stand-ins of several worktrees, from ``scratch``.
    """
    with _place(admin, scratch) as place:
        if admin == common:
            yield _environment(tree, admin, _index(admin, place, own_index=own_index))
            return
        _begin(git, place, admin, admin / "config.worktree", "config.worktree")
        (place / "commondir").write_bytes(os.fsencode(common) + b"\n")
        yield _environment(tree, place, _index(admin, place, own_index=own_index))


@contextlib.contextmanager
def of_repository(git: GitRunner, tree: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Give the environment in which git looks at a repository, and runs no program that its configuration names.

    Args:
        folder: its git folder.
    """
    common = common_of(folder)
    with _place(folder) as place:
        _begin(git, place, folder, common / "config", "config")
        for name in ("refs", "packed-refs", "reftable", "shallow"):
            if files.exists(common / name) and not files.exists(place / name):
                os.symlink(common / name, place / name)
        # Not by a link: paths to further objects may count from where these are.
        objects = {"GIT_OBJECT_DIRECTORY": str(common / "objects")}
        yield {**_environment(tree, place, _index(folder, place, own_index=False)), **objects}


def folder_of(tree: Path) -> Path | None:
    """Return the git folder of a repository inside a worktree, or None."""
    folder = gitdir.pointer_of(tree) or tree / ".git"
    return folder.resolve() if folder.is_dir() else None


def common_of(folder: Path) -> Path:
    """Return where a git folder's refs and objects are: in itself, unless it is a worktree's."""
    said = gitdir.read_admin(folder).commondir
    return Path(os.path.realpath(folder / said)) if said else folder


def _environment(tree: Path, folder: Path, index: Path) -> dict[str, str]:
    return {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)}


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Give a new folder that goes afterwards."""
    import tempfile

    return tempfile.TemporaryDirectory(prefix="swarm-")


@contextlib.contextmanager
def _place(folder: Path, given: str = "") -> Iterator[Path]:
    """Give an empty folder that goes afterwards; errors are about the one that it stands for."""
    with contextlib.nullcontext(given) if given else scratch() as top:
        place = Path(top, "worktrees", folder.name)  # by this word git's errors tell that it is none of the user's
        os.makedirs(place)
        try:
            yield place
        except SwarmError as error:
            error.message = error.message.replace(str(place), str(folder))
            raise


def _index(folder: Path, place: Path, *, own_index: bool) -> Path:
    index = folder / "index"
    if own_index:
        return index
    if index.is_file():
        shutil.copy2(index, place / "index")
    return place / "index"


def _begin(git: GitRunner, place: Path, folder: Path, settings: Path, name: str) -> None:
    """Fill *place* with HEAD, sparse patterns and harmless settings of a git folder."""
    head = gitdir.full_head_of(folder)
    if head:
        (place / "HEAD").write_bytes(os.fsencode(head) + b"\n")
    with contextlib.suppress(FileNotFoundError):  # the worktree went away meanwhile
        for entry in os.listdir(folder):
            if entry in {"info", "reftable"} or entry.startswith("sharedindex."):
                os.symlink(folder / entry, place / entry)
    if settings.is_file():
        (place / name).write_bytes(b"".join(_harmless(git, settings)))


def _harmless(git: GitRunner, settings: Path) -> Iterator[bytes]:
    """Yield the lines of a configuration whose settings run no program; none if it cannot be read."""
    _, out, _ = git.attempt("config", "--file", str(settings), "--no-includes", "--list", "-z")
    for item in out.split(b"\0"):
        key, given, value = item.partition(b"\n")
        section, _, name = key.partition(b".")
        if os.fsdecode(key) in _HARMLESS:
            escaped = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
            yield b"[%s]\n\t%s%s\n" % (section, name, b' = "%s"' % escaped if given else b"")
