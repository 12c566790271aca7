"""Prove that worktrees are exactly what their commits say; two gits are asked for all of them.

A tree is at rest if its index is the tree of the commit, entry for entry, and the system says of every file what
the index says of it.  A file that may have changed without a trace is read.  Whatever is out of the ordinary proves
nothing: then git is asked, tree by tree.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from swarm.git import gitdir
from swarm.git.content import converted
from swarm.git.content.blobs import name_of, tree_name_of
from swarm.git.content.walk import Walk, walk
from swarm.git.shortcuts import index
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
    """A worktree at rest.

    Attributes:
        head: the commit that is checked out.
        tree: that commit's.
        found: what lies in the worktree; also files that no commit has.
        tracked: those that the commit has.
    """

    head: str
    tree: str
    found: Walk
    tracked: frozenset[str]


class _Index(NamedTuple):
    """An index as a proof needs it: (place, path) of each entry, the names of the blobs, the tree that it is."""

    data: bytes
    entries: list[tuple[int, str]]
    tree: str
    written_ns: int


def at_rest(git: GitRunner, common: Path, checkouts: Sequence[Checkout], digits: int) -> list[Rest | None]:
    """Return the proved facts about each, or None.

    Args:
        common: the repository's git folder.
        digits: of an object id.
    """
    names = {one: _head_name(one.gitdir, digits) for one in checkouts}
    commits = _commits(git, [name for name in names.values() if name])
    if not commits or _converts_anywhere(git):
        return [None] * len(checkouts)
    return [_prove(git, common, one, *commits.get(names[one], ("", "")), digits) for one in checkouts]


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


def _converts_anywhere(git: GitRunner) -> bool:
    """Whether by its configuration a file in a worktree may have other bytes than its blob."""
    settings = converted.settings_of(git.ask("config", "--list", "-z"))
    return settings.takes or settings.gives or settings.names_file


def _prove(git: GitRunner, common: Path, one: Checkout, commit: str, tree: str, digits: int) -> Rest | None:
    known = _read_index(one.gitdir / "index", digits) if commit else None
    if known is None or known.tree != tree or files.exists(one.gitdir / "config.worktree"):
        return None
    found = walk(one.tree)
    tracked = frozenset(path for _, path in known.entries)
    strange = found.nested or found.bare or found.special or found.unreadable
    if strange or converted.has_attributes(git, common, (*tracked, *found.files)):
        return None
    if not all(_is_as_known(known, place, path, found, one.tree, digits) for place, path in known.entries):
        return None
    return Rest(commit, tree, found, tracked)


def _is_as_known(known: _Index, place: int, path: str, found: Walk, tree: Path, digits: int) -> bool:
    info = found.infos.get(path)
    if info is None:
        return False
    changed, changed_rest, written, written_rest, _, *facts = index.STAT.unpack_from(known.data, place)
    word = index.WORD
    if (
        (info.st_ctime_ns // _SECOND & word, info.st_ctime_ns % _SECOND) != (changed, changed_rest)
        or (info.st_mtime_ns // _SECOND & word, info.st_mtime_ns % _SECOND) != (written, written_rest)
        or [info.st_ino & word, _git_mode(info.st_mode), info.st_uid & word, info.st_gid & word, info.st_size & word]
        != facts
    ):
        return False
    # A file of the moment in which the index was written may have changed without a trace.
    if max(info.st_ctime_ns, info.st_mtime_ns) <= known.written_ns - index.CLOCK_STEP_NS:
        return True
    return name_of(tree / path, digits) == known.data[place + index.STAT.size :][: digits // 2].hex()


def _git_mode(mode: int) -> int:
    if stat.S_ISREG(mode):
        return stat.S_IFREG | (0o755 if mode & 0o100 else 0o644)
    return stat.S_IFMT(mode)


def _read_index(path: Path, digits: int) -> _Index | None:
    """Read an index that is of a plain kind, with nothing hidden, in conflict or announced in it."""
    size = digits // 2
    try:
        written_ns = os.stat(path).st_mtime_ns
        data = files.read_small(path, index.LIMIT)
    except (OSError, SwarmError):
        return None
    cuts = index.entries(data, size)
    if cuts is None:
        return None
    entries, lines, end = [], [], index.START
    for place, flags, name, end in cuts:  # noqa: B007  # the last end is used
        mode = int.from_bytes(data[place + 24 : place + 28], "big")
        if flags & (_ALWAYS_VALID | index.EXTENDED | index.STAGE) or stat.S_IFMT(mode) == 0o160000:
            return None
        entries.append((place, os.fsdecode(name)))
        lines.append((name, b"%o" % mode, data[place + index.STAT.size : place + index.STAT.size + size]))
    if not index.only_harmless(data, end, len(data) - size):
        return None
    return _Index(data, entries, tree_name_of(lines, digits), written_ns)
