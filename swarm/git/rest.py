"""Find changes in many worktrees with two git processes for all, instead of one each.

That is possible where nothing is staged or hidden: the index is the tree of the commit, entry for entry, and git
converts no file.  Then a file is unchanged if the system says of it what the index says; else it is read.  Of
worktrees in which anything is out of the ordinary nothing is said: git is asked, tree by tree.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from swarm.git import gitdir
from swarm.git.content import converted
from swarm.git.content.blobs import Folders, name_of
from swarm.git.content.walk import MOST, Walk, walk
from swarm.git.shortcuts import index, ordinary
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.project.layout import HEADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from swarm.git.changes import Checkout
    from swarm.git.running.runner import GitRunner

_ALWAYS_VALID = 0x8000
_SECOND = 10**9
_HEX = frozenset("0123456789abcdef")


class Rest(NamedTuple):
    """A worktree in which nothing is staged or hidden.

    Attributes:
        head: the commit that is checked out.
        tree: that commit's.
        changed: the files that are not exactly as the commit has them; those that are gone among them.
        found: what lies in the worktree; also files that no commit has.
        entries: (mode, object, stage, path) of what the commit has.
        folders: its trees.
    """

    head: str
    tree: str
    changed: frozenset[str]
    found: Walk
    entries: list[tuple[str, str, str, str]]
    folders: Folders

    @property
    def tracked(self) -> set[str]:
        """The files that the commit has."""
        return {path for _, _, _, path in self.entries}


class _Index(NamedTuple):
    """An index: its bytes, where each entry is, the entries in bytes and in text, the trees, when it was written."""

    data: bytes
    places: list[int]
    lines: list[tuple[bytes, bytes, bytes]]
    entries: list[tuple[str, str, str, str]]
    folders: Folders
    written_ns: int


def at_rest(git: GitRunner, common: Path, checkouts: Sequence[Checkout], digits: int) -> list[Rest | None]:
    """Return the facts about each; None if it is unusual, and git must be asked.

    Args:
        common: the repository's git folder.
        digits: of an object id.
    """
    names = {one: _head_name(one.gitdir, digits) for one in checkouts}
    commits = _commits(git, [name for name in names.values() if name])
    if not commits or not _is_plain(git):
        return [None] * len(checkouts)
    known: dict[str, _Index] = {}
    return [_see(git, common, one, *commits.get(names[one], ("", "")), digits, known) for one in checkouts]


def _head_name(admin: Path, digits: int) -> str:
    """Return by which name git finds the commit that is checked out; empty if it is an unusual one."""
    said = gitdir.head_of(admin)
    branch = said.removeprefix("ref: ")
    if branch != said:
        return branch if branch.startswith(HEADS) and branch.isprintable() and " " not in branch else ""
    return said if len(said) == digits and _HEX.issuperset(said) else ""


def _commits(git: GitRunner, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return name → (commit, its tree)."""
    asked = list(dict.fromkeys(names))
    lines = "".join(f"{name}^{{commit}}\n{name}^{{tree}}\n" for name in asked).encode("utf-8", "surrogateescape")
    if not asked:
        return {}
    out = git.ask("cat-file", "--batch-check=%(objectname)", stdin=lines).decode("utf-8", "replace").splitlines()
    pairs = zip(asked, out[::2], out[1::2], strict=True)
    return {name: (commit, tree) for name, commit, tree in pairs if " " not in commit + tree}


def _is_plain(git: GitRunner) -> bool:
    """Whether by its configuration git sees files as they are, and an index is of the plain kind."""
    listed = git.ask("config", "--list", "-z")
    settings = converted.settings_of(listed)
    return ordinary.is_plain(listed) and not (settings.takes or settings.gives or settings.names_file)


def _see(
    git: GitRunner, common: Path, one: Checkout, commit: str, tree: str, digits: int, like: dict[str, _Index]
) -> Rest | None:
    """See one worktree; *like* are indexes of trees that were read before."""
    known = _read_index(one.gitdir / "index", digits, like.get(tree)) if commit else None
    if known is None or known.folders.name != tree or files.exists(one.gitdir / "config.worktree"):
        return None
    like[tree] = known
    found = walk(one.tree)
    strange = found.nested or found.bare or found.special or found.unreadable
    paths = [path for _, _, _, path in known.entries]
    if strange or converted.has_attributes(git, common, (*paths, *found.files)):
        return None
    if sum(found.sizes.get(path, 0) for path in paths) > sum(_size(known, place) for place in known.places) + MOST:
        return None  # to read all that was put into them may take days; git stops after a while
    changed = (
        path
        for place, path in zip(known.places, paths, strict=True)
        if not _is_as_known(known, place, path, found, one.tree, digits)
    )
    return Rest(commit, tree, frozenset(changed), found, known.entries, known.folders)


def _is_as_known(known: _Index, place: int, path: str, found: Walk, tree: Path, digits: int) -> bool:
    info = found.infos.get(path)
    mode = int.from_bytes(known.data[place + 24 : place + 28], "big")
    if info is None or _git_mode(info.st_mode) != mode:
        return False
    word = index.WORD
    changed, written = divmod(info.st_ctime_ns, _SECOND), divmod(info.st_mtime_ns, _SECOND)
    now = (
        *(changed[0] & word, changed[1], written[0] & word, written[1]),
        *(info.st_ino & word, mode, info.st_uid & word, info.st_gid & word, info.st_size & word),
    )
    facts = index.STAT.unpack_from(known.data, place)
    # A file of the moment in which the index was written may have changed without a trace.
    settled = max(info.st_ctime_ns, info.st_mtime_ns) <= known.written_ns - index.CLOCK_STEP_NS
    if settled and now == (*facts[:4], *facts[5:]):
        return True
    if _size(known, place) not in (0, info.st_size & word):  # 0 is also that of one that git wants to read
        return False
    return name_of(tree / path, digits) == known.data[place + index.STAT.size :][: digits // 2].hex()


def _size(known: _Index, place: int) -> int:
    """Return how large a file was when the index was written, of which git keeps 32 bits."""
    return int(index.STAT.unpack_from(known.data, place)[-1])


def _git_mode(mode: int) -> int:
    if stat.S_ISREG(mode):
        return stat.S_IFREG | (0o755 if mode & 0o100 else 0o644)
    return stat.S_IFMT(mode)


def _read_index(path: Path, digits: int, like: _Index | None) -> _Index | None:
    """Read an index that is of a plain kind, with nothing hidden, in conflict or announced in it.

    Args:
        like: another one, which may be of the same tree.
    """
    size = digits // 2
    try:
        written_ns = os.stat(path).st_mtime_ns
        data = files.read_small(path, index.LIMIT)
    except (OSError, SwarmError):
        return None
    cuts = index.entries(data, size)
    if cuts is None:
        return None
    places, lines, end = [], [], index.START
    for place, flags, name, end in cuts:  # noqa: B007  # the last end is used
        mode = int.from_bytes(data[place + 24 : place + 28], "big")
        if flags & (_ALWAYS_VALID | index.EXTENDED | index.STAGE) or stat.S_IFMT(mode) == 0o160000:
            return None
        places.append(place)
        lines.append((name, b"%o" % mode, data[place + index.STAT.size : place + index.STAT.size + size]))
    if not index.only_harmless(data, end, len(data) - size):
        return None
    if like is not None and like.lines == lines:
        return _Index(data, places, lines, like.entries, like.folders, written_ns)
    entries = [(mode.decode("ascii"), oid.hex(), "0", os.fsdecode(name)) for name, mode, oid in lines]
    return _Index(data, places, lines, entries, Folders(lines, digits), written_ns)
