"""Commits, and whether their content has landed elsewhere.

The only user of GitPython. It cannot read repositories with SHA-256 names, and heeds all variables; there git is asked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from swarm.git.running.runner import is_redirected
from swarm.git.values import Commit

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.git.running.runner import GitRunner

_MOST = 50
#: How changes are written so that they can be compared: the same whatever the user likes to see.
_PATCH = (
    *("-r", "-p", "-U3", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--no-relative", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none"),
)
_FORMAT = "%H%x00%an%x00%ct%x00%s"


class Asks(Protocol):
    """Whoever runs git to look something up."""

    def ask(self, *args: str, stdin: bytes = b"") -> bytes:
        """Return what git prints."""

    def attempt(self, *args: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """Return exit code, output and error text."""


def commits(runner: GitRunner, root: Path, tip: str, base: str) -> tuple[Commit, ...]:
    """Return what *tip* has and *base* has not, newest first, at most fifty."""
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
    """Ask GitPython; None where it stumbles: git itself will say at what."""
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


def landed(runner: Asks, tip: str, base: str, target: str) -> str:
    """Say how the work of *tip* since *base* is in *target*.

    Decided by content, so that squashed and rebased branches are recognised, and a fresh branch is
    not mistaken for a merged one.

    Returns:
        ``fresh``: nothing was committed, or nothing of it is left. ``merged``: *target* has the very
        commits. ``rebased``: it has each change as a commit of its own. ``squashed``: merging would
        change nothing any more, or one commit of *target* is all the changes together. Empty: it is
        not in there.
    """
    if tip == base:
        return "fresh"
    if not target:
        return ""
    if runner.attempt("merge-base", "--is-ancestor", tip, target)[0] == 0:
        return "merged" if runner.attempt("merge-base", "--is-ancestor", base, tip)[0] == 0 else "fresh"
    if _is_empty(runner, tip, target):
        return "fresh"
    code, out, _ = runner.attempt("cherry", target, tip)
    if code == 0 and out and all(line.startswith(b"-") for line in out.splitlines()):
        return "rebased"
    return "squashed" if _adds_nothing(runner, tip, target) or _is_one_commit(runner, tip, target) else ""


def _is_empty(runner: Asks, tip: str, target: str) -> bool:
    """Whether all commits of the branch together change nothing: empty ones, or taken back again."""
    code, out, _ = runner.attempt("merge-base", tip, target)
    return code == 0 and runner.attempt("diff-tree", "--quiet", out.decode("ascii").split()[0], tip)[0] == 0


def _adds_nothing(runner: Asks, tip: str, target: str) -> bool:
    code, out, _ = runner.attempt("merge-tree", "--write-tree", target, tip)
    if code != 0:
        return False  # conflicts, or a git before 2.38
    tree = runner.attempt("rev-parse", "--verify", "--quiet", f"{target}^{{tree}}")[1]
    return out.strip() == tree.strip()


def _is_one_commit(runner: Asks, tip: str, target: str) -> bool:
    """Whether some commit of *target* is the whole change of the branch; it may have been changed again since."""
    code, out, _ = runner.attempt("merge-base", tip, target)
    if code != 0:
        return False
    fork = out.decode("ascii").split()[0]
    diff = runner.ask("diff-tree", *_PATCH, fork, tip)
    whole = runner.ask("patch-id", "--stable", stdin=diff).split()
    if not whole:
        return False
    listed = runner.ask("rev-list", "--max-count=500", "--no-merges", f"{fork}..{target}")
    log = runner.ask("diff-tree", "--stdin", *_PATCH, stdin=listed)
    ids = {line.split()[0] for line in runner.ask("patch-id", "--stable", stdin=log).splitlines()}
    return whole[0] in ids
