"""Merging with git's plumbing: tried in a quarantine, then moved onto a branch and into its checkout.

Everything that may turn out wrong happens in a *quarantine*: a private folder takes every object that
git writes, and the repository's own objects are only read.  What is wanted is then copied over, and
the rest is gone with the folder.  (git may renew the age of an object that it finds again, no more.)

A checkout follows its branch with git's own two-tree merge, which keeps local changes and refuses
where they would be lost.  If that is cut short, ``take_back`` puts each file of the difference back to
what it was, as long as it is the old one, the new one, or a beginning of one of them; any other content
is somebody's work and stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from swarm import fsio
from swarm.domain.errors import GitFailed, IdentityMissing, SwarmError, TargetMoved
from swarm.domain.layout import HEADS
from swarm.domain.merging import Changes, FileChange, FileConflict, Merged, Snapshot
from swarm.drivers import gitdir
from swarm.drivers.gitrun import explain
from swarm.drivers.history import landed as content_landed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from swarm.domain.merging import Checkout
    from swarm.drivers.gitrun import GitRunner

_T = TypeVar("_T")
_R = TypeVar("_R")

_GITLINK, _LINK = "160000", "120000"
_STATUS = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "type changed",
}
_THROW_AWAY = {
    "GIT_AUTHOR_NAME": "swarm",
    "GIT_AUTHOR_EMAIL": "swarm@localhost",
    "GIT_COMMITTER_NAME": "swarm",
    "GIT_COMMITTER_EMAIL": "swarm@localhost",
}
_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "sequencer": "cherry-pick or revert sequence",
}
_KIND = re.compile(r"CONFLICT \(([^)]*)\)")
_AUTHOR = re.compile(rb"^author (.*) <(.*)> (\d+ [+-]\d+)$", re.MULTILINE)
_ENCODING = re.compile(rb"^encoding (.*)$", re.MULTILINE)
#: The index of a checkout keeps the user's own choice of caches.
_OWN_INDEX = ("-c", "core.untrackedCache=keep")
_PLAIN_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")


class Merging:
    """Merges in one repository. Implements ``ports.Merging``.

    Args:
        environ: the caller's environment; of it only who the user is counts here.
        jobs: how many gits may work at the same time; 0 means one a processor.
    """

    def __init__(self, runner: GitRunner, common: Path, *, environ: Mapping[str, str], jobs: int = 0) -> None:
        self._git = runner
        self._common = common
        self._jobs = jobs or os.cpu_count() or 1
        self._user = {name: environ[name] for name in _IDENTITY if environ.get(name)}

    @contextlib.contextmanager
    def quarantine(self) -> Iterator[Quarantine]:
        """Give a place to merge in; nothing that is made there gets into the repository by itself."""
        with tempfile.TemporaryDirectory(prefix="swarm-") as folder:
            yield Quarantine(self._git, self._common, Path(folder), self._user, self._jobs)

    # --- look ----------------------------------------------------------------------------------

    def check_identity(self) -> None:
        """Make sure that git knows whose commits these will be.

        Raises:
            IdentityMissing
        """
        for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            code, _, err = self._git.attempt("var", name, env=self._user)
            if code != 0:
                raise IdentityMissing(
                    "cannot make commits: git does not know your name and address",
                    details=err.decode("utf-8", "replace").strip() or None,
                )

    def signs(self) -> bool:
        """Whether the user wants commits signed."""
        code, out, _ = self._git.attempt("config", "--type=bool", "commit.gpgSign")
        return code == 0 and out.strip() == b"true"

    def busy(self, branch: str) -> str:
        """Say which half-done operation will move the branch when it ends; empty if none will."""
        for folder in (self._common, *(admin.path for admin in gitdir.admin_dirs(self._common))):
            for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
                with contextlib.suppress(OSError):
                    text = os.fsdecode(fsio.read_small(folder / name, 1 << 16)).strip()
                    if text.removeprefix(HEADS) == branch:
                        return "bisect" if name == "BISECT_START" else "rebase"
        return ""

    def operations(self, checkout: Checkout) -> tuple[str, ...]:
        """Return the git operations in progress in a checkout."""
        return tuple(what for name, what in _OPERATIONS.items() if fsio.exists(checkout.gitdir / name))

    def obstacles(self, checkout: Checkout, changes: Changes) -> tuple[str, ...]:
        """Return the paths with local work that stands in the way of these changes."""
        with _private_index(checkout.gitdir) as index:
            env = {**_env(checkout), **_ONE_INDEX, "GIT_INDEX_FILE": str(index)}
            entries, unmerged = self._entries(env)
            _show_all(self._git, env, changes.paths)
            self._git.run("update-index", "-q", "--refresh", env=env, cwd=checkout.tree, ok=(0, 1))
            out = self._git.ask(
                *("diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty"),
                env=env,
                cwd=checkout.tree,
            )
        edited = {os.fsdecode(path) for path in out.split(b"\0") if path}
        found = set(unmerged)
        for path in changes.paths:
            if entries.get(path) != changes.old.get(path) or path in edited:
                found.add(path)
        for path in changes.new.keys() - changes.old.keys():
            found |= _in_the_way(checkout.tree, path, entries, changes)
        return tuple(sorted(found))

    def before(self, checkout: Checkout, changes: Changes) -> dict[str, list[str]]:
        """Return what ``take_back`` must know of a checkout as it is now.

        That is: the paths that a sparse checkout leaves out, and the folders that will be new.
        """
        out = self._git.ask("ls-files", "-t", "-z", env=_env(checkout), cwd=checkout.tree)
        skipped = {os.fsdecode(item[2:]) for item in out.split(b"\0") if item.startswith((b"S ", b"s "))}
        parents = {str(parent) for path in changes.new for parent in PurePosixPath(path).parents}
        return {
            "left_out": sorted(skipped & changes.paths),
            "folders": sorted(path for path in parents if _kind_of(checkout.tree, path) != "folder"),
        }

    def _entries(self, env: Mapping[str, str]) -> tuple[dict[str, tuple[str, str]], set[str]]:
        """Return path → (mode, object) of an index, and the paths in conflict."""
        entries: dict[str, tuple[str, str]] = {}
        unmerged = set()
        for item in self._git.ask("ls-files", "-s", "-z", env=env, cwd=Path(env["GIT_WORK_TREE"])).split(b"\0"):
            if item:
                facts, _, path = item.partition(b"\t")
                mode, oid, stage = facts.decode("ascii").split(" ")
                if stage == "0":
                    entries[os.fsdecode(path)] = (mode, oid)
                else:
                    unmerged.add(os.fsdecode(path))
        return entries, unmerged

    # --- act -----------------------------------------------------------------------------------

    def move(self, checkout: Checkout, old: str, new: str) -> None:
        """Let a checkout's files and index go from one commit to another, local changes kept.

        Raises:
            GitFailed or one of its kind: git refused, or was stopped in the middle; ``take_back`` mends that.
        """
        env = _env(checkout)
        what = f"cannot update the files of {checkout.tree}"
        # The two-tree merge believes times alone; files that only have another time must not stop it.
        self._git.run(*_OWN_INDEX, "update-index", "-q", "--refresh", env=env, cwd=checkout.tree, ok=(0, 1), what=what)
        self._git.run(*_OWN_INDEX, "read-tree", "-m", "-u", old, new, env=env, cwd=checkout.tree, what=what)
        changes = _changes(self._git.ask(*_RAW_DIFF, old, new))
        for path in sorted(changes.old.keys() - changes.new.keys()):
            if _kind_of(checkout.tree, path) == "file":  # git only warns of that
                raise GitFailed(f"{what}: {path} could not be removed")

    def update_branch(self, checkout: Checkout | None, branch: str, old: str, new: str, reason: str) -> None:
        """Move a branch in one step, if it is still where it was.

        Raises:
            TargetMoved: it is not; nothing was changed.
        """
        env = _env(checkout) if checkout else None  # so that the right HEAD gets a line in its log
        try:
            self._git.run(
                *("update-ref", "-m", reason, "--stdin", "-z"),
                stdin=os.fsencode(f"update {HEADS}{branch}\0{new}\0{old}\0"),
                env=env,
                what=f"cannot move branch {branch}",
            )
        except GitFailed as error:
            if "but expected" in (error.details or ""):
                raise TargetMoved(f"branch {branch} was moved meanwhile", details=error.details) from error
            raise

    def take_back(
        self, checkout: Checkout, old: str, new: str, before: Mapping[str, Sequence[str]], tip: str
    ) -> tuple[str, ...]:
        """Put a checkout back that was on its way from *old* to *new*; may be interrupted and repeated.

        Args:
            before: what ``before`` said.
            tip: where the branch is now; what somebody has committed there as it is in *new* stays.

        Returns:
            Paths that are left alone: their content is neither, so it is somebody's work.
        """
        changes = _changes(self._git.ask(*_RAW_DIFF, old, new))
        if tip and tip != old:
            changes = changes.but(changes.made_by(_changes(self._git.ask(*_RAW_DIFF, old, tip))))
        env = _env(checkout)
        entries, _ = self._entries(env)
        skipped = set(before["left_out"])
        kept = self._files_back(checkout, changes, skipped, before["folders"])
        lines = []
        for path in sorted(changes.paths, key=lambda one: one in changes.old):  # first what goes
            was, became, now = changes.old.get(path), changes.new.get(path), entries.get(path)
            if now == became and now != was:
                mode, oid = was or ("0", "0" * len(old))
                lines.append(f"{mode} {oid}\t{path}\0")
        if lines:
            self._git.run(
                *(*_OWN_INDEX, "update-index", "-z", "--index-info"),
                stdin=os.fsencode("".join(lines)),
                env=env,
                cwd=checkout.tree,
            )
            again = sorted(skipped & changes.old.keys())
            if again:
                stdin = os.fsencode("".join(f"{path}\0" for path in again))
                flags = ("update-index", "--skip-worktree", "-z", "--stdin")
                self._git.run(*_OWN_INDEX, *flags, stdin=stdin, env=env, cwd=checkout.tree)
        self._git.run(*_OWN_INDEX, "update-index", "-q", "--refresh", env=env, cwd=checkout.tree, ok=(0, 1))
        return kept

    def _files_back(
        self, checkout: Checkout, changes: Changes, skipped: Collection[str], folders: Sequence[str]
    ) -> tuple[str, ...]:
        old = {path: entry for path, entry in changes.old.items() if entry[0] != _GITLINK and path not in skipped}
        new = {path: entry for path, entry in changes.new.items() if entry[0] != _GITLINK}
        as_old, as_new = self._same(checkout, old), self._same(checkout, new)
        kept, write, remove = [], [], []
        for path in sorted(old.keys() | new.keys()):
            there = _kind_of(checkout.tree, path)
            ours = path in as_new or (there == "file" and self._is_begun(checkout, path, old.get(path), new.get(path)))
            if path in old and path not in as_old and (there != "file" or ours):
                write.append(path)
            elif path not in old and there == "file" and ours:
                remove.append(path)
            elif there == "file" and path not in as_old:
                kept.append(path)
        for path in remove:
            fsio.unlink_if_there(checkout.tree / path)
        for path in sorted(folders, reverse=True):  # the deepest first
            _remove_empty(checkout.tree / path)
        write = [path for path in write if _kind_of(checkout.tree, path) != "folder"]
        with self._index_of(checkout, {path: old[path] for path in write}) as env:
            self._git.run(
                *("checkout-index", "--force", "-z", "--stdin"),
                stdin=b"".join(os.fsencode(path) + b"\0" for path in write),
                env=env,
                cwd=checkout.tree,
                what=f"cannot put the files of {checkout.tree} back",
            )
        return tuple(kept)

    def _same(self, checkout: Checkout, entries: Mapping[str, tuple[str, str]]) -> set[str]:
        """Return the paths whose files are exactly what these entries say."""
        with self._index_of(checkout, entries) as env:
            self._git.run("update-index", "-q", "--refresh", env=env, cwd=checkout.tree, ok=(0, 1))
            out = self._git.ask("diff-files", "--name-only", "-z", "--no-renames", env=env, cwd=checkout.tree)
        return set(entries) - {os.fsdecode(path) for path in out.split(b"\0")}

    @contextlib.contextmanager
    def _index_of(self, checkout: Checkout, entries: Mapping[str, tuple[str, str]]) -> Iterator[dict[str, str]]:
        """Give the environment of a private index that holds these entries and no more."""
        with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
            env = {**_env(checkout), **_ONE_INDEX, "GIT_INDEX_FILE": str(Path(scratch) / "index")}
            lines = "".join(f"{mode} {oid}\t{path}\0" for path, (mode, oid) in entries.items())
            self._git.run("update-index", "-z", "--index-info", stdin=os.fsencode(lines), env=env, cwd=checkout.tree)
            yield env

    def _is_begun(self, checkout: Checkout, path: str, *entries: tuple[str, str] | None) -> bool:
        """Whether the file is a beginning of what git would write there."""
        target = checkout.tree / path
        if target.is_symlink():
            return False
        try:
            there = fsio.read_small(target, 1 << 31)
        except (OSError, SwarmError):
            return False  # a pipe or such: not git's
        for mode, oid in (entry for entry in entries if entry is not None and entry[0] != _LINK):
            if mode == _GITLINK:
                continue
            code, whole, _ = self._git.attempt(
                "cat-file", "--filters", f"--path={path}", oid, env=_env(checkout), cwd=checkout.tree
            )
            if code == 0 and whole.startswith(there):
                return True
        return False


class Quarantine:
    """A place to merge in. Implements ``ports.Quarantine``."""

    def __init__(self, runner: GitRunner, common: Path, folder: Path, user: Mapping[str, str], jobs: int) -> None:
        self._git = runner
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
        self._env |= _config(
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
        with fsio.os_errors(f"cannot read {checkout.tree}"), _private_index(checkout.gitdir) as index:
            env = {**self._env, **_env(checkout), "GIT_INDEX_FILE": str(index)}
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
        return tuple(_file_changes([os.fsdecode(item) for item in out.split(b"\0")]))

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
        return _changes(self._run(*_RAW_DIFF, old, new))

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
        return _read_merge(out, conflicts=code == 1, names=(ours, theirs))

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


# --- support ---------------------------------------------------------------------------------------

_RAW_DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index")


def _changes(out: bytes) -> Changes:
    """Read ``diff-tree --raw -z``."""
    fields = out.split(b"\0")
    before: dict[str, tuple[str, str]] = {}
    after: dict[str, tuple[str, str]] = {}
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = facts.decode("ascii").removeprefix(":").split(" ")
        path = os.fsdecode(name)
        if old_mode != "000000":
            before[path] = (old_mode, old_oid)
        if new_mode != "000000":
            after[path] = (new_mode, new_oid)
    return Changes(before, after)


def _env(checkout: Checkout) -> dict[str, str]:
    return {"GIT_DIR": str(checkout.gitdir), "GIT_WORK_TREE": str(checkout.tree)}


def _config(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that gives git, and every filter that it runs, these settings."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


_ONE_INDEX = _config({"core.splitIndex": "false"})


@contextlib.contextmanager
def _private_index(folder: Path) -> Iterator[Path]:
    """Give a copy of an index; with its time, by which git knows what to distrust."""
    with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
        copy = Path(scratch) / "index"
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(folder / "index", copy)
        yield copy


def _show_all(git: GitRunner, env: Mapping[str, str], paths: Iterable[str]) -> None:
    """Let git look at files again that it was told to believe unchanged; in a private index."""
    wanted = set(paths)
    listed = git.ask("ls-files", "-v", "-z", env=env, cwd=Path(env["GIT_WORK_TREE"])).split(b"\0")
    hidden = [item[2:] + b"\0" for item in listed if item[:1].islower() and os.fsdecode(item[2:]) in wanted]
    if hidden:
        git.run(
            *("update-index", "--no-assume-unchanged", "-z", "--stdin"),
            stdin=b"".join(hidden),
            env=env,
            cwd=Path(env["GIT_WORK_TREE"]),
        )


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


def _kind_of(tree: Path, path: str) -> str:
    """Return ``file``, ``folder``, or nothing; a path through a link or a file is nothing."""
    here = tree
    for part in path.split("/")[:-1]:
        here /= part
        try:
            if not stat.S_ISDIR(os.lstat(here).st_mode):
                return ""
        except OSError:
            return ""
    try:
        mode = os.lstat(tree / path).st_mode
    except OSError:
        return ""
    return "folder" if stat.S_ISDIR(mode) else "file"


def _in_the_way(tree: Path, path: str, tracked: Collection[str], changes: Changes) -> set[str]:
    """Return what git does not know, or what stays, at the place of a new file: git would write over it."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        parent = "/".join(parts[:depth])
        if _kind_of(tree, parent) == "file":
            return set() if parent in changes.old and parent not in changes.new else {parent}
    kind = _kind_of(tree, path)
    if kind == "file":
        return {path}  # an ignored one too: git would not ask
    found = set()
    if kind == "folder":
        for where, folders, names in os.walk(tree / path):
            links = [name for name in folders if os.path.islink(os.path.join(where, name))]
            for name in (*names, *links):
                inside = os.path.relpath(os.path.join(where, name), tree)
                if inside not in tracked or inside in changes.new or inside not in changes.old:
                    found.add(inside)
    return found


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _read_merge(out: bytes, *, conflicts: bool, names: Sequence[str]) -> Merged:
    """Read what ``merge-tree -z --messages`` prints: a tree, the files in conflict, and what git says of them."""
    fields = [os.fsdecode(item) for item in out.split(b"\0")]
    tree, rest = fields[0].strip(), fields[1:]
    if not conflicts:
        return Merged(tree)
    kinds: dict[str, list[str]] = {}
    stages: dict[str, dict[str, tuple[str, str]]] = {}
    while rest and rest[0]:
        facts, _, name = rest.pop(0).partition("\t")
        mode, oid, stage = facts.split(" ")
        path = _real_name(name, names)
        kinds.setdefault(path, [])
        stages.setdefault(path, {})[stage] = (mode, oid)
    rest = rest[1:]
    while rest and rest[0].isdigit():
        number = int(rest[0])
        paths, (kind, text) = rest[1 : 1 + number], rest[1 + number : 3 + number]
        rest = rest[3 + number :]
        said = _KIND.search(kind if "binary" in kind else text) or _KIND.search(kind)
        if said:
            named = [_real_name(path, names) for path in paths]
            for path in [one for one in named if one in kinds] or named[:1]:
                kinds.setdefault(path, []).append(_kind(said[1]))
    return Merged(
        tree,
        tuple(FileConflict(path, _tidy_kinds(found, stages.get(path, {}))) for path, found in sorted(kinds.items()))
        or (FileConflict("", ("unknown",)),),
    )


def _kind(said: str) -> str:
    if said.startswith("submodule"):
        return "submodule"  # git adds why it did not try
    return said.replace("contents", "content")


def _real_name(path: str, names: Sequence[str]) -> str:
    """Take away what git adds to a name that is taken: ``file~<commit>``."""
    for name in names:
        path = path.removesuffix(f"~{name}")
    return path


def _tidy_kinds(found: Sequence[str], stages: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    kinds = list(dict.fromkeys(found)) or ["content"]
    if "binary" in kinds and len(kinds) > 1:
        kinds = [kind for kind in kinds if kind != "content"]
    ours, theirs = stages.get("2"), stages.get("3")
    if ours and theirs and ours[1] == theirs[1] and ours[0] != theirs[0]:
        kinds = ["mode", *(kind for kind in kinds if kind != "content")]
    return tuple(kinds)


def _file_changes(fields: Sequence[str]) -> Iterator[FileChange]:
    """Read ``diff-tree -z --raw --numstat``: first a line of facts per file, then one of numbers."""
    rest = list(fields)
    kinds: dict[str, tuple[str, str]] = {}
    while rest and rest[0].startswith(":"):
        letter = rest.pop(0).rpartition(" ")[2][:1]
        old = rest.pop(0)
        path = rest.pop(0) if letter in "RC" else old
        kinds[path] = (letter, old if path != old else "")
    while rest and rest[0]:
        added, deleted, path = rest.pop(0).split("\t", 2)
        if not path:
            path = rest[1]
            del rest[:2]
        letter, old = kinds.get(path, ("M", ""))
        lines = [None if number == "-" else int(number) for number in (added, deleted)]
        yield FileChange(path, _STATUS.get(letter, "modified"), lines[0], lines[1], old)
