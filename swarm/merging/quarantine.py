"""A quarantine: temporary objects to try merges in.

A private folder takes every object that git writes, and the repository's own objects are only read.  What
is wanted is then copied over, and the rest is gone with the folder.  (git may renew the age of an object
that it finds again, no more.)
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from swarm.git.content.walk import MOST
from swarm.git.errors import GitFailed
from swarm.git.graph import Graph
from swarm.git.history import landed_by
from swarm.git.merge_trees import Merger, merge_trees
from swarm.git.plumbing import RAW_DIFF, alternate, config_env, raw_changes
from swarm.git.running import standin
from swarm.kit import files as fsio
from swarm.kit.errors import SwarmError
from swarm.merging.committing import Committer
from swarm.merging.errors import too_much_to_read
from swarm.merging.values import FileChange, Merged, Snapshot
from swarm.merging.words import file_changes, read_merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from swarm.git.changes import Changes, Checkout
    from swarm.git.running.runner import GitRunner

_T = TypeVar("_T")
_R = TypeVar("_R")

_AUTHOR = re.compile(rb"^author (.* <.*> \d+ [+-]\d+)$", re.MULTILINE)
_ENCODING = re.compile(rb"^encoding (.*)$", re.MULTILINE)
#: So many merges are worth a git of their own.
_TOGETHER = 16
_PLAIN_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")


class Quarantine:
    """A place to merge in. Implements ``ports.Quarantine``."""

    def __init__(self, runner: GitRunner, common: Path, folder: Path, user: Mapping[str, str], jobs: int) -> None:
        self._git = runner
        self._common = common
        self._jobs = jobs
        objects = folder / "objects"
        objects.mkdir()
        self._env = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternate(common / "objects"),
            "GIT_QUARANTINE_PATH": str(objects),  # git itself forbids refs to objects in here
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
        self._commits = Committer(runner, self._env, user, folder)
        self._merger: Merger | None = None
        self._trees: dict[str, str] = {}

    def _run(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, what: str = "") -> bytes:
        return self._git.run(*args, stdin=stdin, env={**self._env, **(env or {})}, what=what)

    def _oid(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, what: str = "") -> str:
        return self._run(*args, stdin=stdin, env=env, what=what).decode("ascii").strip()

    # --- what there is ---------------------------------------------------------------------------

    def snapshots(self, checkouts: Sequence[Checkout]) -> tuple[Snapshot | SwarmError, ...]:
        """Look at several worktrees at once; an error stands for one that could not be looked at."""

        def look(checkout: Checkout) -> Snapshot | SwarmError:
            try:
                return self.snapshot(checkout)
            except SwarmError as error:
                return error

        return self._each(look, checkouts)

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
                path  # a path that ends in a slash is a separate repository
                for path in self._ask(env, checkout, "ls-files", "-o", "--exclude-standard", "-z")
                if not path.endswith("/")
            ]
            paths = dict.fromkeys((*changed, *(others if untracked else ())))
            self._refuse_endless(checkout.tree, paths)
            behind = _behind_links(checkout.tree, changed)  # their folder is a link now, and git would not remove them
            for how, some in (
                ("--force-remove", behind),
                ("--add --remove --replace", [path for path in paths if path not in behind]),
            ):
                if some:
                    self._git.run(
                        *("update-index", *how.split(), "-z", "--stdin"),
                        stdin=os.fsencode("".join(f"{path}\0" for path in some)),
                        env=env,
                        cwd=checkout.tree,
                        what=f"cannot read the files of {checkout.tree}",
                    )
            tree = self._git.run("write-tree", env=env, cwd=checkout.tree).decode("ascii").strip()
        differing = self.touched([(self.tree_of(head), tree)]).popitem()[1]
        commit = head
        if differing:
            commit = self._throw_away(tree, (head, *_merging_with(checkout.gitdir)))
        return Snapshot(head, commit, differing, tuple(dict.fromkeys(staged)), tuple(others))

    @staticmethod
    def _refuse_endless(tree: Path, paths: Iterable[str]) -> None:
        """Refuse files that would take forever to read.

        Raises:
            TooMuchToRead
        """
        sizes = {path: os.lstat(tree / path).st_size for path in paths if os.path.lexists(tree / path)}
        if sum(sizes.values()) > MOST:
            raise too_much_to_read(tree, max(sizes, key=sizes.__getitem__), sum(sizes.values()))

    def ignored(self, checkout: Checkout, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of some paths that are in a worktree and that git ignores there."""
        with standin.of_worktree(self._git, checkout.tree, checkout.gitdir, self._common) as where:
            asked = ("ls-files", "-o", "-i", "--exclude-standard", "-z", "--", *names)
            return tuple(self._ask({**self._env, **where}, checkout, *asked))

    def _ask(self, env: Mapping[str, str], checkout: Checkout, *args: str) -> list[str]:
        out = self._git.ask(*args, env=env, cwd=checkout.tree)
        return [os.fsdecode(item) for item in (out.split(b"\0") if "-z" in args else out.splitlines()) if item]

    def touched(self, trees: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, ...]]:
        """Return in which paths each pair of trees differs; a rename is both its names."""
        lines = "".join(f"{old} {new}\n" for old, new in dict.fromkeys(trees)).encode("ascii")
        out = self._run("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", stdin=lines) if lines else b""
        found: dict[tuple[str, str], list[str]] = {}
        paths: list[str] = []
        fields = iter(out.split(b"\0"))
        for field in fields:
            *heads, facts = field.split(b"\n")  # a line of its own names the trees, before the first path of theirs
            for head in heads:
                old, new = head.decode("ascii").split(" ")
                found[old, new] = paths = []
            if facts:
                paths.append(os.fsdecode(next(fields)))
        return {pair: tuple(paths) for pair, paths in found.items()}

    def files(self, old: str, new: str) -> tuple[FileChange, ...]:
        """Return the changed files with their lines counted."""
        out = self._run("diff-tree", "-r", "-z", "-M", "--raw", "--numstat", old, new)
        return tuple(file_changes([os.fsdecode(item) for item in out.split(b"\0")]))

    def patch(self, old: str, new: str) -> str:
        """Return the difference as ``git apply`` takes it; bytes that are no UTF-8 as lone surrogates."""
        out = self._run("diff-tree", "-r", "-p", "-M", "--binary", "--full-index", *_PLAIN_DIFF, old, new)
        return out.decode("utf-8", "surrogateescape")

    def changes(self, old: str, new: str) -> Changes:
        """Return how two commits differ, file by file."""
        return raw_changes(self._run(*RAW_DIFF, old, new))

    def commits(self, tip: str, known: str) -> tuple[str, ...]:
        """Return the commits of *tip* that *known* lacks, oldest first."""
        out = self._run("rev-list", "--topo-order", "--reverse", tip, f"^{known}")
        return tuple(out.decode("ascii").split())

    def to_repeat(self, tip: str, onto: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return (commit, its parents) for the commits that a rebase onto *onto* repeats, oldest first.

        That leaves out merges, and what the other history has under another id.
        """
        flags = ("--topo-order", "--reverse", "--no-merges", "--cherry-pick", "--right-only")
        out = self._run("log", *flags, "--no-show-signature", "--format=%H %P", f"{onto}...{tip}")
        rows = (line.split() for line in out.decode("ascii").splitlines())
        return tuple((row[0], tuple(row[1:])) for row in rows)

    def has_merges(self, tip: str, known: str) -> bool:
        """Whether *tip* has merge commits that *known* has not."""
        return bool(self._run("rev-list", "--merges", "--max-count=1", tip, f"^{known}").strip())

    def graph(self, tips: Iterable[str]) -> Graph:
        """Walk the history of some commits."""
        graph = Graph(self, tips)
        self._trees |= graph.trees
        return graph

    def landed(self, graph: Graph, asked: Sequence[tuple[str, str]], target: str) -> tuple[str, ...]:
        """Return how *target* contains the work of each (tip, base); see ``history.landed``."""
        return landed_by(self, graph, asked, target)

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
        if commit not in self._trees:
            self._trees[commit] = self._oid("rev-parse", "--verify", f"{commit}^{{tree}}")
        return self._trees[commit]

    # --- merge -----------------------------------------------------------------------------------

    def merges(self, pairs: Sequence[tuple[str, str]]) -> tuple[Merged | SwarmError, ...]:
        """Merge several pairs at once; an error stands for one that could not be tried."""
        size = max(_TOGETHER, -(-len(pairs) // self._jobs))
        parts = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        return tuple(result for part in self._each(self._merges, parts) for result in part)

    def _merges(self, pairs: Sequence[tuple[str, str]]) -> list[Merged | SwarmError]:
        answers = zip(pairs, merge_trees(self, pairs), strict=True)
        return [one if isinstance(one, SwarmError) else read_merge(one, names) for names, one in answers]

    def merge(self, ours: str, theirs: str) -> Merged:
        """Merge two commits.

        Raises:
            GitFailed: git could not; that is no conflict, and not clean either.
        """
        if self._merger is None:
            start = functools.partial(self._git.listening, env=self._env)
            self._merger = Merger(start, (ours, self.tree_of(ours)))
        return read_merge(self._merger.merge(ours, theirs), (ours, theirs))

    def end(self) -> None:
        """End the gits that listen."""
        self._commits.end()
        if self._merger is not None:
            self._merger.end()

    def pick(self, onto: str, commit: str) -> Merged:
        """Repeat the change of one commit on top of another one.

        ``merge-tree`` takes its base from the history, and an option for another one came only with git
        2.40; so *onto*'s tree is given the commit's parent for its own.
        """
        parents = self._oid("rev-list", "--no-walk", "--parents", commit).split()[1:]
        if not parents:
            empty = self._throw_away(self._oid("hash-object", "-t", "tree", "-w", "--stdin"), ())
            commit, parents = self._throw_away(self.tree_of(commit), (empty,)), [empty]
        return self.merge(self._throw_away(self.tree_of(onto), (parents[0],)), commit)

    def _throw_away(self, tree: str, parents: Sequence[str]) -> str:
        return self._noted(self._commits.throw_away(tree, parents), tree)

    def check_identity(self) -> None:
        """Make sure that git knows whose commits these will be.

        Raises:
            IdentityMissing
        """
        self._commits.check_identity()

    def commit(self, tree: str, parents: Sequence[str], message: str, *, sign: bool) -> str:
        """Make a commit of the user's."""
        make = self._commits.signed if sign else self._commits.commit
        return self._noted(make(tree, parents, os.fsencode(message)), tree)

    def commit_like(self, original: str, tree: str, parent: str, *, sign: bool) -> str:
        """Make a commit with the author, the date and the message of another one."""
        raw = self._run("cat-file", "commit", original)
        head, _, message = raw.partition(b"\n\n")
        author, encoding = _AUTHOR.search(head), _ENCODING.search(head)
        if author is None:
            raise GitFailed(f"cannot repeat commit {original}: git cannot read its author")
        make = self._commits.signed if sign else self._commits.commit
        return self._noted(make(tree, (parent,), message, author[1], encoding[1] if encoding else b"utf-8"), tree)

    def _noted(self, commit: str, tree: str) -> str:
        self._trees[commit] = tree
        return commit

    def keep(self, tip: str, known: Sequence[str]) -> None:
        """Copy a commit and its objects into the repository.

        Args:
            known: commits that are there already.
        """
        asked = "\n".join([tip, *(f"^{one}" for one in known)]) + "\n"
        pack = self._git.ask(*("pack-objects", "--revs", "--stdout", "-q"), stdin=asked.encode("ascii"), env=self._env)
        self._git.run("unpack-objects", "-q", stdin=pack, what="cannot write the merged files")

    def _each(self, act: Callable[[_T], _R], items: Sequence[_T]) -> tuple[_R, ...]:
        """Do the same for several, some at a time."""
        if len(items) < 2 or self._jobs == 1:
            return tuple(act(item) for item in items)
        joined = (self._git.work(),)
        with ThreadPoolExecutor(min(self._jobs, len(items)), initializer=self._git.help_with, initargs=joined) as pool:
            work = [pool.submit(act, item) for item in items]
            try:
                return tuple(item.result() for item in work)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._git.stop_all()
                raise
            finally:
                pool.shutdown(wait=True)
                self._git.resume()


def _behind_links(tree: Path, paths: Iterable[str]) -> set[str]:
    """Return the paths that lead through a symbolic link in a tree."""

    @functools.cache
    def is_behind(folder: str) -> bool:
        return bool(folder) and (os.path.islink(tree / folder) or is_behind(os.path.dirname(folder)))

    return {path for path in paths if is_behind(os.path.dirname(path))}


def _merging_with(folder: Path) -> tuple[str, ...]:
    """Return the commits that a worktree is merging: its next commit will have these parents too."""
    with contextlib.suppress(OSError):
        return tuple(fsio.read_small(folder / "MERGE_HEAD", 1 << 16).decode("ascii", "replace").split())
    return ()
