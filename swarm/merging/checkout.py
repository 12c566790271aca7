"""Move a branch and its checkout to a merge that was tried in a quarantine.

A checkout follows its branch with git's own two-tree merge, which keeps local changes and refuses
where they would be lost.  If that is cut short, ``take_back`` restores each file of the difference that
is the old one, the new one, or a beginning of one of them.  Any other content is the user's work and stays.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.git.errors import GitFailed
from swarm.git.gitdir import OPERATIONS
from swarm.git.plumbing import GITLINK, LINK, ONE_INDEX, RAW_DIFF, raw_changes
from swarm.git.running import standin
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import own
from swarm.merging.errors import TargetMoved
from swarm.merging.quarantine import Quarantine
from swarm.merging.values import LocalWork
from swarm.project.layout import HEADS
from swarm.worktrees.trees.parts import IN_ONE_FILE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from swarm.git.changes import Changes, Checkout
    from swarm.git.running.runner import GitRunner

_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
_CACHES = ("-c", "core.untrackedCache=keep")


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
        """Yield a quarantine for merges; its objects stay out of the repository."""
        with tempfile.TemporaryDirectory(prefix="swarm-") as folder:
            box = Quarantine(self._git, self._common, Path(folder), self._user, self._jobs)
            try:
                yield box
            finally:
                box.end()

    # --- look ----------------------------------------------------------------------------------

    def signs(self) -> bool:
        """Whether the user wants commits signed."""
        code, out, _ = self._git.attempt("config", "--type=bool", "commit.gpgSign")
        return code == 0 and out.strip() == b"true"

    def busy(self, branch: str) -> str:
        """Return the half-done operation that will move the branch at its end; empty without one."""
        for folder in (self._common, *(admin.path for admin in gitdir.admin_dirs(self._common))):
            for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
                with contextlib.suppress(OSError):
                    text = os.fsdecode(files.read_small(folder / name, 1 << 16)).strip()
                    if text.removeprefix(HEADS) == branch:
                        return "bisect" if name == "BISECT_START" else "rebase"
        return ""

    def operations(self, checkout: Checkout) -> tuple[str, ...]:
        """Return the git operations in progress in a checkout."""
        return tuple(what for name, what in OPERATIONS.items() if files.exists(checkout.gitdir / name))

    def local_work(self, checkout: Checkout, changes: Changes) -> LocalWork:
        """Return the local work in a checkout that blocks these changes or must follow them."""
        listed = ("diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty")
        with self._by_copy(checkout) as where:
            env = {**where, **ONE_INDEX}
            entries, unmerged, tags = self._entries(env)
            hidden = [path for path in sorted(changes.paths & tags.keys()) if tags[path].islower()]
            if hidden:  # git was told to believe them unchanged
                lines = b"".join(os.fsencode(path) + b"\0" for path in hidden)
                flags = ("update-index", "--no-assume-unchanged", "-z", "--stdin")
                self._git.run(*flags, stdin=lines, env=env, cwd=checkout.tree)
            edited = _names(self._git.ask(*listed, env=env, cwd=checkout.tree))
            stale = not edited.isdisjoint(changes.paths)
            if stale:  # it may be their times alone
                self._git.run("update-index", "-q", "--refresh", env=env, cwd=checkout.tree, ok=(0, 1))
                edited = _names(self._git.ask(*listed, env=env, cwd=checkout.tree))
        found = set(unmerged)
        for path in changes.paths:
            if entries.get(path) != changes.old.get(path) or path in edited:
                found.add(path)
        for path in changes.new.keys() - changes.old.keys():
            found |= _in_the_way(checkout.tree, path, entries, changes)
        left_out = (path for path in changes.paths & tags.keys() if tags[path] in "Ss")
        return LocalWork(tuple(sorted(found)), tuple(sorted(left_out)), stale=stale or bool(hidden))

    def before(self, checkout: Checkout, changes: Changes, local: LocalWork) -> dict[str, list[str]]:
        """Return the present state of a checkout, for ``take_back``.

        That is: the paths that a sparse checkout leaves out, and the folders that will be new.
        """
        parents = {str(parent) for path in changes.new for parent in PurePosixPath(path).parents}
        return {
            "left_out": list(local.left_out),
            "folders": sorted(path for path in parents if _kind_of(checkout.tree, path) != "folder"),
        }

    def _by_copy(self, checkout: Checkout) -> AbstractContextManager[dict[str, str]]:
        """Give the environment in which git works by a copy of a checkout's index."""
        return standin.of_worktree(self._git, checkout.tree, checkout.gitdir, self._common)

    def _by_its_index(self, checkout: Checkout) -> AbstractContextManager[dict[str, str]]:
        return standin.of_worktree(self._git, checkout.tree, checkout.gitdir, self._common, own_index=True)

    def _caches(self, checkout: Checkout) -> tuple[str, ...]:
        """Return how an index is written: that of the main checkout keeps the user's own choice of caches."""
        return _CACHES if checkout.gitdir == self._common else (*_CACHES, *IN_ONE_FILE)

    def _entries(self, env: Mapping[str, str]) -> tuple[dict[str, tuple[str, str]], set[str], dict[str, str]]:
        """Return path → (mode, object) of an index, the paths in conflict, and path → git's mark of it."""
        entries: dict[str, tuple[str, str]] = {}
        unmerged = set()
        tags: dict[str, str] = {}
        for item in self._git.ask("ls-files", "-s", "-v", "-z", env=env, cwd=Path(env["GIT_WORK_TREE"])).split(b"\0"):
            if item:
                facts, _, name = item.partition(b"\t")
                tag, mode, oid, stage = facts.decode("ascii").split(" ")
                path = os.fsdecode(name)
                tags[path] = tag
                if stage == "0":
                    entries[path] = (mode, oid)
                else:
                    unmerged.add(path)
        return entries, unmerged, tags

    # --- act -----------------------------------------------------------------------------------

    def move(self, checkout: Checkout, old: str, new: str, changes: Changes, local: LocalWork) -> None:
        """Let a checkout's files and index go from one commit to another, local changes kept.

        Args:
            changes: how the two differ.
            local: what ``local_work`` said.

        Raises:
            GitFailed or one of its kind: git refused, or was stopped in the middle; ``take_back`` mends that.
        """
        what = f"cannot update the files of {checkout.tree}"
        caches = self._caches(checkout)
        with self._by_its_index(checkout) as env:
            if local.stale:
                # The two-tree merge believes times alone; files that only have another time must not stop it.
                refresh = (*caches, "update-index", "-q", "--refresh")
                self._git.run(*refresh, env=env, cwd=checkout.tree, ok=(0, 1), what=what)
            self._git.run(*caches, "read-tree", "-m", "-u", old, new, env=env, cwd=checkout.tree, what=what)
        for path in sorted(changes.old.keys() - changes.new.keys()):
            if _kind_of(checkout.tree, path) == "file":  # git only warns of that
                raise GitFailed(f"{what}: {path} could not be removed")

    def update_branch(self, checkout: Checkout | None, branch: str, old: str, new: str, reason: str) -> None:
        """Move a branch in one step, if it is still where it was.

        Raises:
            TargetMoved: it is not; nothing was changed.
        """
        # So that the right HEAD gets a line in its log.
        env = {"GIT_DIR": str(checkout.gitdir), "GIT_COMMON_DIR": str(self._common)} if checkout else None
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
        changes = raw_changes(self._git.ask(*RAW_DIFF, old, new))
        if tip and tip != old:
            changes = changes.but(changes.made_by(raw_changes(self._git.ask(*RAW_DIFF, old, tip))))
        skipped = set(before["left_out"])
        kept = self._files_back(checkout, changes, skipped, before["folders"])
        with self._by_its_index(checkout) as env:
            self._index_back(checkout, changes, skipped, "0" * len(old), env)
        return kept

    def _index_back(
        self, checkout: Checkout, changes: Changes, skipped: set[str], nothing: str, env: Mapping[str, str]
    ) -> None:
        entries = self._entries(env)[0]
        caches = self._caches(checkout)
        lines = []
        for path in sorted(changes.paths, key=lambda one: one in changes.old):  # first what goes
            was, became, now = changes.old.get(path), changes.new.get(path), entries.get(path)
            if now == became and now != was:
                mode, oid = was or ("0", nothing)
                lines.append(f"{mode} {oid}\t{path}\0")
        if lines:
            self._git.run(
                *(*caches, "update-index", "-z", "--index-info"),
                stdin=os.fsencode("".join(lines)),
                env=env,
                cwd=checkout.tree,
            )
            again = sorted(skipped & changes.old.keys())
            if again:
                stdin = os.fsencode("".join(f"{path}\0" for path in again))
                flags = ("update-index", "--skip-worktree", "-z", "--stdin")
                self._git.run(*caches, *flags, stdin=stdin, env=env, cwd=checkout.tree)
        self._git.run(*caches, "update-index", "-q", "--refresh", env=env, cwd=checkout.tree, ok=(0, 1))

    def _files_back(
        self, checkout: Checkout, changes: Changes, skipped: Collection[str], folders: Sequence[str]
    ) -> tuple[str, ...]:
        old = {path: entry for path, entry in changes.old.items() if entry[0] != GITLINK and path not in skipped}
        new = {path: entry for path, entry in changes.new.items() if entry[0] != GITLINK}
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
            files.unlink_if_there(checkout.tree / path)
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
        """Return the paths whose files equal these entries exactly."""
        with self._index_of(checkout, entries) as env:
            self._git.run("update-index", "-q", "--refresh", env=env, cwd=checkout.tree, ok=(0, 1))
            flags = ("--name-only", "-z", "--no-renames", "--ignore-submodules=dirty")
            out = self._git.ask("diff-files", *flags, env=env, cwd=checkout.tree)
        return set(entries) - _names(out)

    @contextlib.contextmanager
    def _index_of(self, checkout: Checkout, entries: Mapping[str, tuple[str, str]]) -> Iterator[dict[str, str]]:
        """Give the environment of a private index that holds these entries and no more."""
        with self._by_copy(checkout) as where, tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
            env = {**where, **ONE_INDEX, "GIT_INDEX_FILE": str(Path(scratch) / "index")}
            lines = "".join(f"{mode} {oid}\t{path}\0" for path, (mode, oid) in entries.items())
            self._git.run("update-index", "-z", "--index-info", stdin=os.fsencode(lines), env=env, cwd=checkout.tree)
            yield env

    def _is_begun(self, checkout: Checkout, path: str, *entries: tuple[str, str] | None) -> bool:
        """Whether the file is a half-written form of git's content."""
        target = checkout.tree / path
        if target.is_symlink():
            return False
        try:
            there = files.read_small(target, 1 << 31)
        except (OSError, SwarmError):
            return False  # a pipe or such: not git's
        for mode, oid in (entry for entry in entries if entry is not None and entry[0] != LINK):
            if mode == GITLINK:
                continue
            asked = ("cat-file", "--filters", f"--path={path}", oid)
            with self._by_copy(checkout) as env:
                code, whole, _ = self._git.attempt(*asked, env=env, cwd=checkout.tree)
            if code == 0 and whole.startswith(there):
                return True
        return False


def _names(out: bytes) -> set[str]:
    return {os.fsdecode(path) for path in out.split(b"\0") if path}


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
    """Return untracked or remaining files at the place of a new file, which git would overwrite."""
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
        own.rmdir(os.fspath(folder))
