"""A quarantine: temporary objects to try merges in.

A private folder takes every object that git writes, and the repository's own objects are only read.  What
is wanted is then copied over, and the rest is gone with the folder.  (git may renew the age of an object
that it finds again, no more.)
"""

from __future__ import annotations

import contextlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from swarm.git.errors import GitFailed
from swarm.git.history import landed as content_landed
from swarm.git.plumbing import RAW_DIFF, config_env, raw_changes
from swarm.git.running import standin
from swarm.git.running.explain import explain
from swarm.kit import files as fsio
from swarm.kit.errors import SwarmError
from swarm.merging.values import FileChange, Merged, Snapshot
from swarm.merging.words import file_changes, read_merge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swarm.git.changes import Changes, Checkout
    from swarm.git.running.runner import GitRunner

_T = TypeVar("_T")
_R = TypeVar("_R")

_THROW_AWAY = {
    "GIT_AUTHOR_NAME": "swarm",
    "GIT_AUTHOR_EMAIL": "swarm@localhost",
    "GIT_COMMITTER_NAME": "swarm",
    "GIT_COMMITTER_EMAIL": "swarm@localhost",
}
_AUTHOR = re.compile(rb"^author (.*) <(.*)> (\d+ [+-]\d+)$", re.MULTILINE)
_ENCODING = re.compile(rb"^encoding (.*)$", re.MULTILINE)
_PLAIN_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")


class Quarantine:
    """A place to merge in. Implements ``ports.Quarantine``."""

    def __init__(self, runner: GitRunner, common: Path, folder: Path, user: Mapping[str, str], jobs: int) -> None:
        self._git = runner
        self._common = common
        self._user = user
        self._jobs = jobs
        objects = folder / "objects"
        objects.mkdir()
        self._env = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _alternate(common / "objects"),
            "GIT_QUARANTINE_PATH": str(objects),  # git itself forbids refs to what is in here
            "GIT_OPTIONAL_LOCKS": "0",
        }
        # Nothing here outlives the folder, so nothing needs to be small, safe, or in the repository's LFS store.
        self._env |= config_env(
            {
                "core.looseCompression": "0",
                "core.fsync": "none",
                "core.splitIndex": "false",
                "lfs.storage": str(folder / "lfs"),
            }
        )

    def _run(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, what: str = "") -> bytes:
        return self._git.run(*args, stdin=stdin, env={**self._env, **(env or {})}, what=what)

    def _oid(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, what: str = "") -> str:
        return self._run(*args, stdin=stdin, env=env, what=what).decode("ascii").strip()

    # --- what there is ---------------------------------------------------------------------------

    def snapshots(self, checkouts: Sequence[Checkout]) -> tuple[Snapshot | SwarmError, ...]:
        """Look at several worktrees at once; an error stands for one that could not be looked at."""
        return self._each(self.snapshot, checkouts)

    def snapshot(self, checkout: Checkout, *, untracked: bool = True) -> Snapshot:
        """Make a throw-away commit of everything in a worktree; touches neither it nor its index.

        Args:
            untracked: take in files that git does not know; else they are only listed.
        """
        by_copy = standin.of_worktree(self._git, checkout.tree, checkout.gitdir, self._common)
        with fsio.os_errors(f"cannot read {checkout.tree}"), by_copy as where:
            env = {**self._env, **where}
            head = self._ask(env, checkout, "rev-parse", "--verify", "HEAD^{commit}")[0]
            staged = self._ask(
                *(env, checkout, "diff-index", "--cached", "--name-only", "-z", "--no-renames", head),
            )
            flags = ("--name-only", "-z", "--no-renames", "--ignore-submodules=dirty")
            changed = self._ask(env, checkout, "diff-files", *flags)
            others = [
                path  # one that ends in a slash is a repository of its own
                for path in self._ask(env, checkout, "ls-files", "-o", "--exclude-standard", "-z")
                if not path.endswith("/")
            ]
            paths = dict.fromkeys((*changed, *(others if untracked else ())))
            if paths:
                self._git.run(
                    *("update-index", "--add", "--remove", "--replace", "-z", "--stdin"),
                    stdin=os.fsencode("".join(f"{path}\0" for path in paths)),
                    env=env,
                    cwd=checkout.tree,
                    what=f"cannot read the files of {checkout.tree}",
                )
            tree = self._git.run("write-tree", env=env, cwd=checkout.tree).decode("ascii").strip()
        differing = self.touched(head, tree)
        commit = head
        if differing:
            commit = self._throw_away(tree, (head, *_merging_with(checkout.gitdir)))
        return Snapshot(head, commit, differing, tuple(dict.fromkeys(staged)), tuple(others))

    def _ask(self, env: Mapping[str, str], checkout: Checkout, *args: str) -> list[str]:
        out = self._git.ask(*args, env=env, cwd=checkout.tree)
        return [os.fsdecode(item) for item in (out.split(b"\0") if "-z" in args else out.splitlines()) if item]

    def touched(self, old: str, new: str) -> tuple[str, ...]:
        """Return the paths in which two commits or trees differ; a rename is both its names."""
        out = self._run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        return tuple(os.fsdecode(path) for path in out.split(b"\0") if path)

    def files(self, old: str, new: str) -> tuple[FileChange, ...]:
        """Return the changed files with their lines counted."""
        out = self._run("diff-tree", "-r", "-z", "-M", "--raw", "--numstat", old, new)
        return tuple(file_changes([os.fsdecode(item) for item in out.split(b"\0")]))

    def patch(self, old: str, new: str) -> str:
        """Return the difference as ``git apply`` takes it; bytes that are no UTF-8 as lone surrogates."""
        out = self._run("diff-tree", "-r", "-p", "-M", "--binary", "--full-index", *_PLAIN_DIFF, old, new)
        return out.decode("utf-8", "surrogateescape")

    def merge_base(self, one: str, other: str) -> str:
        """Return where two histories parted; empty if they have nothing in common."""
        code, out, _ = self._git.attempt("merge-base", one, other, env=self._env)
        return out.decode("ascii").split()[0] if code == 0 else ""

    def changes(self, old: str, new: str) -> Changes:
        """Return how two commits differ, file by file."""
        return raw_changes(self._run(*RAW_DIFF, old, new))

    def commits(self, tip: str, known: str) -> tuple[str, ...]:
        """Return what *tip* has and *known* has not, oldest first."""
        out = self._run("rev-list", "--topo-order", "--reverse", tip, f"^{known}")
        return tuple(out.decode("ascii").split())

    def to_repeat(self, tip: str, onto: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return (commit, its parents) of what a rebase onto *onto* repeats, oldest first.

        That leaves out merges, and what the other history has under another id.
        """
        flags = ("--topo-order", "--reverse", "--no-merges", "--cherry-pick", "--right-only")
        out = self._run("log", *flags, "--no-show-signature", "--format=%H %P", f"{onto}...{tip}")
        rows = (line.split() for line in out.decode("ascii").splitlines())
        return tuple((row[0], tuple(row[1:])) for row in rows)

    def has_merges(self, tip: str, known: str) -> bool:
        """Whether *tip* has merge commits that *known* has not."""
        return bool(self._run("rev-list", "--merges", "--max-count=1", tip, f"^{known}").strip())

    def landed(self, tip: str, base: str, target: str) -> str:
        """Say how the work of *tip* since *base* is in *target*; see ``history.landed``."""
        return content_landed(self, tip, base, target)

    def ask(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run a git command in here that only looks something up."""
        return self._run(*args, stdin=stdin)

    def attempt(self, *args: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run one that may fail."""
        return self._git.attempt(*args, stdin=stdin, env=self._env)

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message."""
        return self._run("log", "-1", "--no-show-signature", "--format=%s", commit).decode("utf-8", "replace").strip()

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        return self._oid("rev-parse", "--verify", f"{commit}^{{tree}}")

    # --- merge -----------------------------------------------------------------------------------

    def merges(self, pairs: Sequence[tuple[str, str]]) -> tuple[Merged | SwarmError, ...]:
        """Merge several pairs at once; an error stands for one that could not be tried."""
        return self._each(lambda pair: self.merge(*pair), pairs)

    def merge(self, ours: str, theirs: str) -> Merged:
        """Merge two commits.

        Raises:
            GitFailed: git could not; that is no conflict, and not clean either.
        """
        code, out, err = self._git.attempt(
            *("merge-tree", "--write-tree", "-z", "--messages", ours, theirs), env=self._env
        )
        if code not in (0, 1):
            raise explain("cannot try the merge", code, err.decode("utf-8", "replace").strip())
        return read_merge(out, conflicts=code == 1, names=(ours, theirs))

    def pick(self, onto: str, commit: str) -> Merged:
        """Repeat what one commit does on top of another one.

        ``merge-tree`` takes its base from the history, and an option for another one came only with git
        2.40; so *onto*'s tree is given the commit's parent for its own.
        """
        parents = self._oid("rev-list", "--no-walk", "--parents", commit).split()[1:]
        if not parents:
            empty = self._throw_away(self._oid("hash-object", "-t", "tree", "-w", "--stdin"), ())
            commit, parents = self._throw_away(self.tree_of(commit), (empty,)), [empty]
        return self.merge(self._throw_away(self.tree_of(onto), (parents[0],)), commit)

    def _throw_away(self, tree: str, parents: Sequence[str]) -> str:
        flags = [word for parent in parents for word in ("-p", parent)]
        return self._oid("commit-tree", tree, *flags, "-m", "throw-away", env=_THROW_AWAY)

    def commit(self, tree: str, parents: Sequence[str], message: str, *, sign: bool) -> str:
        """Make a commit of the user's."""
        return self._commit(tree, parents, os.fsencode(message), {}, "utf-8", sign=sign)

    def commit_like(self, original: str, tree: str, parent: str, *, sign: bool) -> str:
        """Make a commit with the author, the date and the message of another one."""
        raw = self._run("cat-file", "commit", original)
        head, _, message = raw.partition(b"\n\n")
        author, encoding = _AUTHOR.search(head), _ENCODING.search(head)
        if author is None:
            raise GitFailed(f"cannot repeat commit {original}: git cannot read its author")
        name, mail, when = (os.fsdecode(part) for part in author.groups())
        env = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail, "GIT_AUTHOR_DATE": f"@{when}"}
        written = os.fsdecode(encoding[1]) if encoding else "utf-8"
        return self._commit(tree, (parent,), message, env, written, sign=sign)

    def _commit(
        self,
        tree: str,
        parents: Sequence[str],
        message: bytes,
        author: Mapping[str, str],
        encoding: str,
        *,
        sign: bool,
    ) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        return self._oid(
            *(
                "-c",
                f"i18n.commitEncoding={encoding}",
                "commit-tree",
                tree,
                *words,
                *(("-S",) if sign else ()),
                "-F",
                "-",
            ),
            stdin=message,
            env={**self._user, **author},
            what="cannot make the commit",
        )

    def keep(self, tip: str, known: Sequence[str]) -> None:
        """Copy a commit and what belongs to it into the repository.

        Args:
            known: commits that are there already.
        """
        asked = "\n".join([tip, *(f"^{one}" for one in known)]) + "\n"
        pack = self._git.ask(*("pack-objects", "--revs", "--stdout", "-q"), stdin=asked.encode("ascii"), env=self._env)
        self._git.run("unpack-objects", "-q", stdin=pack, what="cannot write the merged files")

    def _each(self, act: Callable[[_T], _R], items: Sequence[_T]) -> tuple[_R | SwarmError, ...]:
        """Do the same for several, some at a time; an error of ours becomes the result."""

        def guarded(item: _T) -> _R | SwarmError:
            try:
                return act(item)
            except SwarmError as error:
                return error

        if len(items) < 2 or self._jobs == 1:
            return tuple(guarded(item) for item in items)
        joined = (self._git.work(),)
        with ThreadPoolExecutor(min(self._jobs, len(items)), initializer=self._git.help_with, initargs=joined) as pool:
            work = [pool.submit(guarded, item) for item in items]
            try:
                return tuple(item.result() for item in work)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._git.stop_all()
                raise
            finally:
                pool.shutdown(wait=True)
                self._git.resume()


def _alternate(path: Path) -> str:
    """Write a path for git's list of object directories, which colons part."""
    text = str(path)
    if ":" not in text and not text.startswith('"') and "\n" not in text:
        return text
    raw = os.fsencode(text)
    return (
        '"' + "".join(f"\\{byte:03o}" if byte < 33 or byte > 126 or byte in b'"\\' else chr(byte) for byte in raw) + '"'
    )


def _merging_with(folder: Path) -> tuple[str, ...]:
    """Return what a worktree is in the middle of merging: its next commit will have these parents too."""
    with contextlib.suppress(OSError):
        return tuple(fsio.read_small(folder / "MERGE_HEAD", 1 << 16).decode("ascii", "replace").split())
    return ()
