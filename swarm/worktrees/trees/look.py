"""Find changes, untracked and ignored files of a working tree.

Everything here works through a private index, so that the worktree's own is never touched, and by a git folder of
swarm's own (``standin.py``): a broken ``.git`` file does not matter, and git runs no program that an agent has set.
"""

from __future__ import annotations

import contextlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from swarm.git import gitdir
from swarm.git.content import converted
from swarm.git.content.walk import Walk, walk
from swarm.git.errors import GitBroken, GitFailed, NotARepo
from swarm.git.refs import admin_head
from swarm.git.rest import at_rest
from swarm.git.running import standin
from swarm.git.shortcuts.index import CLOCK_STEP_NS
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.project.layout import HEADS
from swarm.worktrees.trees.parts import HEX, IN_ONE_FILE, admin_files, cwd_of
from swarm.worktrees.values import TreeState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from swarm.git.changes import Checkout
    from swarm.git.rest import Rest
    from swarm.git.running.runner import GitRunner


#: How many worktrees are looked at together.
_AT_ONCE = 8


class Flagged(NamedTuple):
    """Tracked files that git is configured to skip.

    Attributes:
        left_out: those with the mark of a sparse checkout, which need not be there; deleting another one is a change.
    """

    all: frozenset[str]
    left_out: frozenset[str]


class _Inner(NamedTuple):
    """The findings in a submodule.

    Attributes:
        ignored: files that git ignores there.
        work: what would be lost with it; empty for nothing.
        changed: whether git would call it changed.
    """

    ignored: tuple[str, ...]
    work: str
    changed: bool = False


class TreeLook:
    """Looks at the working trees of one repository."""

    def __init__(self, runner: GitRunner, common: Path, object_format: str) -> None:
        self._git = runner
        self._common = common
        self._zero = "0" * (64 if object_format == "sha256" else 40)

    def look(self, tree: Path, admin: Path) -> TreeState:
        """Find everything in a worktree that is not simply its last commit; changes nothing."""
        with standin.of_worktree(self._git, tree, admin, self._common) as env:
            return self._look(tree, admin, env, self._common)

    def look_all(
        self, checkouts: Sequence[Checkout], given: Sequence[AbstractSet[str]]
    ) -> list[TreeState | SwarmError]:
        """Look at several; an error stands for one that git could not look at.

        Args:
            given: of each, files that are known, and need not be told to be untracked or ignored.
        """
        seen = self.at_rest(checkouts)

        def look(one: tuple[Checkout, AbstractSet[str], Rest | None]) -> TreeState | SwarmError:
            checkout, known, rest = one
            try:
                if rest is None:
                    return self.look(checkout.tree, checkout.gitdir)
                return self._look_beside(checkout.tree, checkout.gitdir, rest, known)
            except SwarmError as error:
                return error

        with ThreadPoolExecutor(_AT_ONCE) as pool:  # each waits for its own git processes
            return list(pool.map(look, zip(checkouts, given, seen, strict=True)))

    def at_rest(self, checkouts: Sequence[Checkout]) -> list[Rest | None]:
        """Return the facts about worktrees that need no git for each; None for unusual ones."""
        return at_rest(self._git, self._common, checkouts, len(self._zero))

    def _look_beside(self, tree: Path, admin: Path, rest: Rest, known: AbstractSet[str]) -> TreeState:
        """Report the look at a worktree without git, and ask git for files that are not in the commit."""
        found = rest.found
        others = found.files.keys() - rest.tracked - known
        untracked: tuple[str, ...] = ()
        if others:
            with standin.of_worktree(self._git, tree, admin, self._common) as env:
                untracked = tuple(path for path in self._untracked(env, found) if path in others)
        return TreeState(
            head=rest.head,
            branch=self._branch(admin),
            modified=tuple(sorted(rest.changed)),
            deleted=tuple(sorted(path for path in rest.changed if path not in found.files)),
            untracked=untracked,
            ignored=tuple(sorted(others.difference(untracked))),
            operations=_operations(admin),
            locks=gitdir.lock_files(admin),
            unreadable=tuple(_unreadable(tree, {*rest.changed, *others}, found)),
            fingerprint=found.fingerprint,
            notes=self.mark_of(admin),
            head_tree=rest.tree,
            found=found,
            rest=rest,
        )

    def _look(self, tree: Path, admin: Path, env: Mapping[str, str], common: Path) -> TreeState:
        head, head_tree = self._head_and_tree(env)
        entries, flagged = self._entries_and_flags(env)
        found = walk(tree)
        tracked = {path for _, _, _, path in entries}
        found.set_apart(tracked)
        changed, rewritten = self._changed(env, entries, flagged, found, _written_ns(admin / "index"))
        rewritten |= self._unlike_checkout(env, common, entries, found, changed | rewritten)
        untracked = self._untracked(env, found)
        ignored = found.files.keys() - tracked - set(untracked)
        inner = {path: self._look_into(tree / path, oid) for _, oid, _, path in entries if path in found.nested}
        return TreeState(
            head=head,
            branch=self._branch(admin),
            modified=tuple(sorted(changed)),
            deleted=tuple(sorted(path for path in changed if path not in found.files)),
            rewritten=tuple(sorted(rewritten)),
            staged=self._staged(env, head),
            unmerged=tuple(sorted({path for _, _, stage, path in entries if stage != "0"})),
            hidden=tuple(sorted(changed & flagged.all)),
            untracked=untracked,
            ignored=tuple(sorted(ignored)),
            nested=tuple(found.nested),
            submodules=tuple(p for p in found.nested if p in tracked),
            submodule_risks=tuple((path, one.work) for path, one in inner.items() if one.work),
            submodule_ignored=tuple(f"{path}/{name}" for path, one in inner.items() for name in one.ignored),
            operations=_operations(admin),
            locks=gitdir.lock_files(admin),
            special=tuple(found.special),
            unreadable=(*found.unreadable, *_unreadable(tree, {*changed, *rewritten, *untracked, *ignored}, found)),
            fingerprint=found.fingerprint,
            notes=self.mark_of(admin),
            head_tree=head_tree,
            found=found,
        )

    def can_read(self, tree: Path, admin: Path) -> bool:
        """Whether git can read its index of a worktree; only looks."""
        with standin.of_worktree(self._git, tree, admin, self._common) as env:
            return self._whole_entries(env) is not None

    def _whole_entries(self, env: Mapping[str, str]) -> list[tuple[str, str, str, str]] | None:
        """Return the entries of an index; None if it is damaged: git takes one without its end for nameless entries."""
        code, out, _ = self._git.attempt("ls-files", "-s", "-z", env=env, cwd=cwd_of(env))
        entries = [_entry(item) for item in out.split(b"\0") if item] if code == 0 else []
        return entries if code == 0 and not any(oid == self._zero for _, oid, _, _ in entries) else None

    def recall(self, admin: Path) -> TreeState:
        """Return the admin folder's state of a worktree that is gone or unreadable."""
        head = (
            self._head({"GIT_DIR": str(admin), "GIT_COMMON_DIR": str(self._common)})
            or self._named_head(admin)
            or self._last_head(admin)
        )
        return TreeState(head=head, branch=self._branch(admin), operations=_operations(admin))

    def _named_head(self, admin: Path) -> str:
        """Return the commit that the HEAD of an admin folder names that git does not take for one; or nothing."""
        branch, said = self._branch(admin), self._head_said(admin)
        name = HEADS + branch if branch else said if HEX.fullmatch(os.fsencode(said)) else "no such"
        code, out, _ = self._git.attempt("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return out.decode("ascii").strip() if code == 0 else ""

    def _head_said(self, admin: Path) -> str:
        return admin_head(self._git, gitdir.read_admin(admin))

    def _branch(self, admin: Path) -> str:
        head = self._head_said(admin)
        return head.removeprefix("ref: ").removeprefix(HEADS) if head.startswith("ref: ") else ""

    def _last_head(self, admin: Path) -> str:
        """Return the last commit of HEAD, for a deleted branch; empty without one."""
        try:
            lines = files.read_small(admin / "logs" / "HEAD", 64 << 20).splitlines()
        except OSError:
            return ""
        for line in reversed(lines):
            oid = line.split(b" ")[1].decode("ascii", "replace")
            if self._git.attempt("cat-file", "-e", f"{oid}^{{commit}}")[0] == 0:
                return oid
        return ""

    def mark_of(self, admin: Path) -> str:
        """Return a text that changes whenever git's notes about a worktree do."""
        marks = []
        for path in admin_files(admin):
            # git writes a shared index also when it only looks; what the index says of it is in the index itself.
            if path.name.startswith("sharedindex."):
                continue
            with contextlib.suppress(OSError):
                info = os.lstat(path)
                marks.append(f"{path.relative_to(admin)}:{info.st_size}:{info.st_mtime_ns}")
        return "|".join(marks)

    def sizes(self, tree: Path, paths: Iterable[str]) -> dict[str, int]:
        """Return the sizes of some files; 0 for other entries."""
        found = {}
        for path in paths:
            try:
                info = os.lstat(tree / path)
            except OSError:
                continue
            found[path] = info.st_size if stat.S_ISREG(info.st_mode) else 0
        return found

    def _head(self, env: Mapping[str, str]) -> str:
        code, out, _ = self._git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}", env=env)
        return out.decode("ascii").strip() if code == 0 else ""

    def _head_and_tree(self, env: Mapping[str, str]) -> tuple[str, str]:
        code, out, _ = self._git.attempt("rev-parse", "HEAD^{commit}", "HEAD^{tree}", env=env)
        head, _, tree = out.decode("ascii", "replace").partition("\n")
        return (head, tree.strip()) if code == 0 else (self._head(env), "")

    def _entries_and_flags(self, env: Mapping[str, str]) -> tuple[list[tuple[str, str, str, str]], Flagged]:
        """Make git check every file again, in the private index; return its entries, and the hidden ones."""
        hidden: dict[str, list[bytes]] = {"--no-assume-unchanged": [], "--no-skip-worktree": []}
        entries = []
        for item in self._git.ask("ls-files", "-s", "-v", "-z", env=env, cwd=cwd_of(env)).split(b"\0"):
            if not item:
                continue
            tag, _, rest = item.partition(b" ")
            entries.append(_entry(rest))
            path = rest.partition(b"\t")[2]
            if tag.islower():
                hidden["--no-assume-unchanged"].append(path)
            if tag in (b"S", b"s"):
                hidden["--no-skip-worktree"].append(path)
        for flag, paths in hidden.items():
            if paths:
                lines = b"\0".join(paths) + b"\0"
                self._git.run("update-index", flag, "-z", "--stdin", stdin=lines, env=env, cwd=cwd_of(env))
        assumed, skipped = (frozenset(map(os.fsdecode, paths)) for paths in hidden.values())
        return entries, Flagged(assumed | skipped, skipped)

    def _entries(self, env: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
        """Return (mode, object, stage, path) of every index entry."""
        listed = self._git.ask("ls-files", "-s", "-z", env=env, cwd=cwd_of(env)).split(b"\0")
        return [_entry(item) for item in listed if item]

    def _changed(
        self,
        env: Mapping[str, str],
        entries: Sequence[tuple[str, str, str, str]],
        flagged: Flagged,
        found: Walk,
        index_ns: int,
    ) -> tuple[set[str], set[str]]:
        """Return the tracked paths that are not as the index says; and those that are, but only for git.

        git believes a file's size and its times in whole seconds. So what changed after the index was
        written is compared by content, and what was written anew is not thereby changed.
        """
        suspects = self._differing(env, flagged, found)
        late = [
            (mode, oid, path)
            for mode, oid, stage, path in entries
            if stage == "0" and path not in suspects and found.changed_ns.get(path, 0) > index_ns - CLOCK_STEP_NS
        ]
        if late:  # an entry that is put in anew knows nothing of the file, so git must read it
            self._put_entries(env, late)
            suspects.update(path for _, _, path in late)
        if not suspects:
            return set(), set()
        self._git.run("update-index", "-q", "--refresh", env=env, cwd=cwd_of(env), ok=(0, 1))
        changed = self._differing(env, flagged, found)
        return changed, suspects - changed

    def _unlike_checkout(
        self,
        env: Mapping[str, str],
        common: Path,
        entries: Sequence[tuple[str, str, str, str]],
        found: Walk,
        known: set[str],
    ) -> set[str]:
        """Return further files that are the same for git, but would be checked out with other bytes."""
        regular = found.sizes.keys() - known
        oids = {
            path: oid for mode, oid, stage, path in entries if stage == "0" and path in regular and mode[:2] == "10"
        }
        return converted.unlike_checkout(self._git, env, common, oids, found) if oids else set()

    def _differing(self, env: Mapping[str, str], flagged: Flagged, found: Walk) -> set[str]:
        wanted = ("--raw", "-z", "--no-renames", "--ignore-submodules=all")
        out = self._git.ask("diff-files", *wanted, env=env, cwd=cwd_of(env))
        fields = os.fsdecode(out).split("\0")
        inside = tuple(f"{folder}/" for folder in found.nested)
        changed = set()
        for facts, path in zip(fields[::2], fields[1::2], strict=False):
            left_out = path in flagged.left_out  # by a sparse checkout
            hidden = path in found.nested or path.startswith(inside)  # `git init` in a tracked folder
            if not (facts.endswith("D") and (left_out or hidden)):
                changed.add(path)
        return changed

    def _staged(self, env: Mapping[str, str], head: str) -> tuple[str, ...]:
        base = head or self._git.ask("hash-object", "-t", "tree", "--stdin").decode("ascii").strip()
        out = self._git.ask(
            *("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--ignore-submodules=none"),
            *("--ita-invisible-in-index", base),  # only announced with `add -N`: nothing is staged
            env=env,
            cwd=cwd_of(env),
        )
        return tuple(sorted({os.fsdecode(path) for path in out.split(b"\0") if path}))

    def _untracked(self, env: Mapping[str, str], found: Walk) -> tuple[str, ...]:
        out = self._git.ask("ls-files", "-o", "--exclude-standard", "-z", env=env, cwd=cwd_of(env))
        paths = (os.fsdecode(path) for path in out.split(b"\0"))
        return tuple(sorted(path for path in paths if path in found.files))

    def _look_into(self, folder: Path, wanted: str) -> _Inner:
        """Look at a submodule as closely as at a worktree, and run nothing that its own configuration names.

        Args:
            wanted: the commit that the project names.
        """
        own = standin.folder_of(folder)
        if own is None:
            return _Inner((), "git cannot read it")
        try:
            with standin.of_repository(self._git, folder, own) as env:
                state = self._look(folder, own, env, standin.common_of(own))
                why = _own_work(state) or self._why_commits_are_work(env, wanted)
        except (GitFailed, GitBroken, NotARepo):
            return _Inner((), "git cannot read it")
        changed = bool(state.modified or state.staged or state.unmerged or state.untracked)
        return _Inner((*state.ignored, *state.submodule_ignored), why, changed=changed)

    def _why_commits_are_work(self, env: Mapping[str, str], wanted: str) -> str:
        # Everything but the remotes' branches, so that a stash counts too.
        own = ("rev-list", "--max-count=1", "HEAD", "--exclude=refs/remotes/*", "--all", "--not", "--remotes")
        code, out, _ = self._git.attempt(*own, env=env, cwd=cwd_of(env))
        if code != 0 or out.strip():
            return "commits that no remote has"
        return "" if self._head(env) == wanted else "another commit than the project names"

    def _put_entries(self, env: Mapping[str, str], lines: Iterable[tuple[str, str, str]]) -> None:
        text = "".join(f"{mode} {oid}\t{path}\0" for mode, oid, path in lines)
        self._git.run(
            *(*IN_ONE_FILE, "update-index", "-z", "--index-info"),
            stdin=os.fsencode(text),
            env=env,
            cwd=cwd_of(env),
            what="cannot save the tree",
        )


def _own_work(state: TreeState) -> str:
    """Return the uncommitted work in a submodule."""
    if state.modified or state.staged or state.unmerged or state.untracked:
        return "uncommitted changes"
    if state.operations:
        return f"a {' and a '.join(state.operations)} is in progress"
    if state.submodule_risks:
        return "{}: {}".format(*state.submodule_risks[0])
    return "a repository inside" if set(state.nested) - set(state.submodules) else ""


def _entry(item: bytes) -> tuple[str, str, str, str]:
    """Read (mode, object, stage, path) of a line of ``ls-files -s``."""
    facts, _, path = item.partition(b"\t")
    mode, oid, stage = facts.decode("ascii").split(" ")
    return mode, oid, stage, os.fsdecode(path)


def _written_ns(index: Path) -> int:
    try:
        return index.stat().st_mtime_ns
    except OSError:
        return 0


def _operations(admin: Path) -> tuple[str, ...]:
    return tuple(what for name, what in gitdir.OPERATIONS.items() if files.exists(admin / name))


def _unreadable(tree: Path, paths: Iterable[str], found: Walk) -> Iterator[str]:
    effective = os.access in os.supports_effective_ids
    for path in sorted(paths):
        regular = path in found.files and path not in found.links
        if regular and not os.access(tree / path, os.R_OK, effective_ids=effective):
            yield path
