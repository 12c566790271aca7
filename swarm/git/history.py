"""Commits, and whether their content has landed elsewhere.

The only user of GitPython. It cannot read repositories with SHA-256 names, and heeds all variables; there git is asked.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, NamedTuple, Protocol

from swarm.git.errors import GitBroken, GitFailed
from swarm.git.graph import Graph
from swarm.git.merge_trees import merge_trees
from swarm.git.running.runner import is_redirected
from swarm.git.values import Commit
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from swarm.git.running.runner import GitRunner

_MOST = 50
#: So many commits of the target are looked at for one that is all of a branch.
_LOOKED_AT = 500
#: How changes are written so that they can be compared: the same whatever the user likes to see.
_PATCH = (
    *("-r", "-p", "-U3", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--no-relative", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none"),
)
_FORMAT = "%H%x00%an%x00%ct%x00%s"


class Asks(Protocol):
    """The protocol of an object that runs git for lookups."""

    def ask(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git and return its output."""

    def attempt(self, *args: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """Return exit code, output and error text."""


def commits(runner: GitRunner, root: Path, tip: str, base: str) -> tuple[Commit, ...]:
    """Return the commits of *tip* that *base* lacks, newest first, at most fifty."""
    # GitPython hands every variable on to git, also those that lead to another repository or break it.
    if len(tip) == 40 and not is_redirected(os.environ):
        found = _by_library(root, tip, base)
        if found is not None:
            return found
    wanted = ("--no-show-signature", "--no-color", "--encoding=UTF-8", f"--max-count={_MOST}", f"--format={_FORMAT}")
    out = runner.ask("log", *wanted, tip, f"^{base}")
    rows = (line.split("\0") for line in out.decode("utf-8", "replace").splitlines())
    return tuple(Commit(oid, author, int(when), subject) for oid, author, when, subject in rows)


def _by_library(root: Path, tip: str, base: str) -> tuple[Commit, ...] | None:
    """Ask GitPython; None if it fails, as git itself then gives the reason."""
    import git

    try:
        with git.Repo(root) as repository:
            found = repository.iter_commits(f"{base}..{tip}", max_count=_MOST)
            return tuple(
                Commit(c.hexsha, c.author.name or "", c.committed_date, str(c.summary).partition("\n")[0])
                for c in found
            )
    except (git.exc.GitError, git.exc.ODBError):
        return None


class Landed(NamedTuple):
    """How the work of a branch is elsewhere, and how many commits it is."""

    how: str
    commits: int = 0


def landed(
    git: Asks, asked: Sequence[tuple[str, str]], target: str, walk: Callable[[Sequence[str]], Graph] | None = None
) -> tuple[Landed, ...]:
    """Return for several tips how *target* contains the work since their bases.

    Decided by content, so that squashed and rebased branches are recognised, and a fresh branch is
    not mistaken for a merged one.

    Args:
        asked: (tip, base) of each.
        target: a commit; empty for none.
        walk: walks the history of some commits, or knows it already.

    Returns:
        ``fresh``: nothing was committed, or nothing of it is left. ``merged``: *target* has the very
        commits. ``rebased``: it has each change as a commit of its own. ``squashed``: merging would
        change nothing any more, or one commit of *target* is all the changes together. Empty: it is
        not in there.
    """
    moved = [commit for tip, base in asked if tip != base for commit in (tip, base)]
    try:
        graph = (walk or functools.partial(Graph, git))([target, *moved]) if moved else None
        found = landed_by(git, graph, asked, target)
    except (GitFailed, GitBroken):  # a damaged history of one says nothing of the others
        return tuple(landed(git, [one], target, walk)[0] for one in asked) if len(asked) > 1 else (Landed(""),)
    return tuple(
        Landed(how, len(graph.since(*one)) if graph is not None else 0) for one, how in zip(asked, found, strict=True)
    )


def landed_by(git: Asks, graph: Graph | None, asked: Sequence[tuple[str, str]], target: str) -> tuple[str, ...]:
    """Say only how, by a walk that knows all these commits; None will do where no tip has left its base."""
    known: dict[tuple[str, str], str] = {}
    unsure: dict[tuple[str, str], str] = {}
    for tip, base in asked:
        if tip == base:
            known[tip, base] = "fresh"
        elif target and graph is not None:
            fork = graph.fork(tip, target)
            if graph.has(target, tip):
                known[tip, base] = "merged" if graph.has(tip, base) else "fresh"
            elif fork and graph.tree_of(fork) == graph.tree_of(tip):  # empty commits, or taken back again
                known[tip, base] = "fresh"
            elif graph.since(target, fork):
                unsure[tip, base] = fork
    if unsure and graph is not None:
        known |= dict(
            zip(unsure, _by_content(git, graph, [(tip, f) for (tip, _), f in unsure.items()], target), strict=True)
        )
    return tuple(known.get(one, "") for one in asked)


def _by_content(git: Asks, graph: Graph, forks: Sequence[tuple[str, str]], target: str) -> list[str]:
    """Compare the changes of the tips since they forked with those of *target* since then."""
    theirs = {tip: [c for c in graph.since(target, fork) if not graph.is_merge(c)] for tip, fork in forks}
    own = {tip: [c for c in graph.since(tip, target) if not graph.is_merge(c)] for tip, _ in forks}
    looked = {tip: commits[:_LOOKED_AT] for tip, commits in theirs.items()}
    ids = _patch_ids(git, dict.fromkeys(c for part in (own, looked) for commits in part.values() for c in commits))
    whole = _patch_ids(git, [f"{tip} {fork}" for tip, fork in forks if fork])
    merged = dict(zip((tip for tip, _ in forks), merge_trees(git, [(target, tip) for tip, _ in forks]), strict=True))
    found = []
    for tip, _ in forks:
        there = {ids[commit] for commit in looked[tip] if commit in ids}
        maybe = looked[tip] != theirs[tip] or all(ids.get(commit) in {None, *there} for commit in own[tip])
        result = merged[tip]
        if maybe and own[tip] and _is_rebased(git, tip, target):
            found.append("rebased")
        elif not isinstance(result, SwarmError) and result.clean and result.tree == graph.tree_of(target):
            found.append("squashed")
        else:
            found.append("squashed" if whole.get(tip) in there else "")
    return found


def _is_rebased(git: Asks, tip: str, target: str) -> bool:
    code, out, _ = git.attempt("cherry", target, tip)
    return code == 0 and bool(out) and all(line.startswith(b"-") for line in out.splitlines())


def _patch_ids(git: Asks, commits: Iterable[str]) -> dict[str, str]:
    """Return commit → id of its change; a line may name the parent to compare it with."""
    lines = "".join(f"{line}\n" for line in commits).encode("ascii")
    diff = git.ask("diff-tree", "--stdin", "--root", *_PATCH, stdin=lines) if lines else b""
    out = git.ask("patch-id", "--stable", stdin=diff).decode("ascii") if diff else ""
    return {commit: patch for patch, commit in (line.split(" ") for line in out.splitlines())}
