"""Whether a repository is plain enough for the fast paths.

Two things are asked of git, once for a whole set: its configuration, and the attributes of the files.
Whatever is not known to make no difference counts as unusual, and is left to git; so is what cannot be told.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.git import gitdir

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from swarm.git.running.runner import GitRunner
    from swarm.git.running.started import Started

#: Settings that decide how a worktree is registered or written, and what they may say for it to be plain.
_PLAIN: dict[str, frozenset[str]] = {
    "core.autocrlf": frozenset({"false", "input"}),
    "core.bare": frozenset({"false"}),
    "core.eol": frozenset({"lf", "native"}),
    "core.filemode": frozenset({"true"}),
    "core.ignorecase": frozenset({"false"}),
    "core.precomposeunicode": frozenset({"false"}),
    "core.prefersymlinkrefs": frozenset({"false"}),
    "core.sharedrepository": frozenset({"0", "false", "umask"}),
    "core.sparsecheckout": frozenset({"false"}),
    "core.splitindex": frozenset({"false"}),
    "core.symlinks": frozenset({"true"}),
    "core.worktree": frozenset(),
    "feature.manyfiles": frozenset({"false"}),
    "index.skiphash": frozenset({"false"}),
    "index.sparse": frozenset({"false"}),
    "index.version": frozenset({"2", "3"}),
    "worktree.userelativepaths": frozenset({"false"}),
    "extensions.objectformat": frozenset({"sha1"}),
    "extensions.refstorage": frozenset({"files"}),
}
#: Kinds of settings of which none is known to be harmless.
_UNUSUAL = ("extensions.", "includeif.")
#: Attributes that change the bytes of a file on its way into a worktree, and values that do not.
_CONVERTING: dict[bytes, frozenset[bytes]] = {
    b"crlf": frozenset({b"unset", b"unspecified", b"input"}),
    b"eol": frozenset({b"unset", b"unspecified", b"lf"}),
    b"filter": frozenset({b"unset", b"unspecified"}),
    b"ident": frozenset({b"unset", b"unspecified"}),
    b"working-tree-encoding": frozenset({b"unset", b"unspecified"}),
}


def has_usual_files(common: Path) -> bool:
    """Whether git's folder is of the usual kind, and no worktree of it half a one."""
    if (common / "reftable").exists() or (common / "HEAD").is_symlink() or gitdir.replaces_objects(common):
        return False
    # At somebody's half a worktree git will stumble: let it do so in its own words.
    return all(admin.commondir and admin.head and admin.gitdir for admin in gitdir.admin_dirs(common))


def ask_settings(git: GitRunner) -> Started:
    """Begin to ask for the configuration."""
    return git.begin("config", "--list", "-z")


def ask_attributes(git: GitRunner, paths: Iterable[bytes]) -> Started:
    """Begin to ask for the attributes of files."""
    lines = b"".join(path + b"\0" for path in paths)
    return git.begin("check-attr", "--cached", "--stdin", "-z", "--all", stdin=lines)


def is_plain(listed: bytes | None) -> bool:
    """Whether with these settings a worktree is registered by the well-known files and nothing else."""
    if listed is None:
        return False
    for item in os.fsdecode(listed).split("\0"):
        key, given, value = item.partition("\n")
        if key in _PLAIN:
            if not given or value.lower() not in _PLAIN[key]:
                return False
        elif key.startswith(_UNUSUAL):
            return False
    return True


def converted(told: bytes | None) -> frozenset[bytes] | None:
    """Return the files that with these attributes may have other bytes than their blobs; None: that cannot be told."""
    if told is None:
        return None
    words = told.split(b"\0")
    facts = zip(words[::3], words[1::3], words[2::3], strict=False)  # path, attribute, value; path, …
    return frozenset(path for path, name, value in facts if name in _CONVERTING and value not in _CONVERTING[name])
