"""The repository: its worktrees, filled fast; on top of its refs and its configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.git.configuration import Configuration
from swarm.git.errors import GitBroken
from swarm.git.refs import Refs, admin_head
from swarm.git.running.explain import explain
from swarm.git.running.ground import Ground, refuse_links
from swarm.git.running.runner import STATUS
from swarm.git.running.started import side_by_side
from swarm.project.layout import HEADS
from swarm.project.model import AdminDir, WorktreeEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.git.running.started import Started

#: Folders at the top of the checkout that hide their content from git themselves.
_OWN = (".swarm", ".worktrees")
#: With this git ends where it does not know an option.
_NO_SUCH_OPTION = 129


class Git(Refs, Configuration):
    """One repository.

    Args:
        place: where it is.
        runner: runs git in the main checkout.
        jobs: how many trees are filled at the same time; 0 means one a processor.
    """

    def collector(self) -> int:
        """Return a process that is removing objects which nothing names; 0 where there is none."""
        return gitdir.collector(self.common, self.root)

    def tracks(self, folder: Path) -> bool:
        """Whether git tracks files below a folder of the main checkout. The runner takes paths literally."""
        if not folder.is_relative_to(self.root):
            return False
        code, out, _ = self.runner.attempt("ls-files", "-z", "--", str(folder.relative_to(self.root)))
        return code == 0 and bool(out)

    # --- worktrees -----------------------------------------------------------------------------

    def worktrees(self) -> tuple[WorktreeEntry, ...]:
        """Return git's list of worktrees, the main checkout first."""
        code, out, err = self.runner.begin("worktree", "list", "--porcelain", "-z").outcome()
        if code == 0:
            return parse_worktrees(out, end=b"\0")
        if code != _NO_SUCH_OPTION:
            raise explain("git worktree list failed", code, err.decode("utf-8", "replace").strip())
        # git before 2.36
        return parse_worktrees(self.runner.ask("worktree", "list", "--porcelain"), end=b"\n")

    def glance(self, paths: Sequence[str]) -> tuple[str, str, frozenset[str]] | None:
        """Return the commit that is checked out, its tree, and which of *paths* it has, without running git.

        None where the files of git's folder do not tell that beyond doubt.
        """
        head = gitdir.head_of(self.common).removeprefix("ref: ")
        tip = gitdir.tips(self.common, (head,)).get(head) if head.startswith(HEADS) else None
        source = self._main_index()[1]
        if tip is None or source is None or (tip, source.tree) != (self.place.commit, self.place.tree):
            return None
        return tip, source.tree, frozenset(path for path in paths if source.has(os.fsencode(path)))

    def add_worktree(
        self, tree: Path, *, branch: str, commit: str, reason: str, aside: Path, anyway: bool = False
    ) -> None:
        """Register a worktree without files, locked at birth with *reason*.

        Args:
            branch: an existing branch to check out; empty for a detached *commit*.
            aside: an existing folder of the operation's own.
            anyway: also if git believes that the branch is checked out elsewhere.
        """
        from swarm.git.shortcuts import register

        for folder in (tree.parent, self.common / "worktrees"):
            Ground(folder).look()
        plain = branch and (look := self._look) is not None and look.registers()
        if plain and register.register(self.common, tree, branch=branch, commit=commit, reason=reason, aside=aside):
            return
        lock = ("--lock", "--reason", reason) if self.version()[:2] >= (2, 33) else ("--lock",)
        target = (str(tree), branch) if branch else ("--detach", str(tree), commit)
        self.runner.run(
            *("worktree", "add", *(("--force",) if anyway else ()), "--quiet", "--no-checkout", *lock, *target),
            what=f"cannot create the worktree {tree.name}",
        )

    def fill(self, trees: Sequence[Path], backdate_ns: int, *, commit: str = "", content: str = "") -> None:
        """Write the files of freshly registered worktrees and make their first ``git status`` fast.

        This is the one piece to replace for another way of filling trees.

        Args:
            commit: where all of them are, if it is the same.
            content: its tree.
        """
        from swarm.git.shortcuts import copying, register

        look = self._look
        source = look.source if look is not None else None
        converted = look.converted() if look is not None else None
        if look is not None and source is not None and converted is not None and content == source.tree:
            pairs = [(tree, admin) for tree in trees if (admin := gitdir.pointer_of(tree)) is not None]
            if lacking := look.missing():  # git would notice while it wrote the files
                raise GitBroken(f"cannot write the files of {trees[0].name}: missing object {lacking[0]}")
            if copying.copy(source, self.root, pairs, backdate_ns, look.ahead, converted) == 0:
                for _, admin in pairs if commit else ():
                    register.note_filled(admin, commit)
                return
        self._fill_by_git(trees, backdate_ns)

    def copies_all(self, content: str) -> bool:
        """Whether all files of new worktrees with this tree have the bytes of its blobs, and are not left to git."""
        look = self._look
        if look is None or look.source is None or look.source.tree != content:
            return False
        return look.converted() == frozenset() and not look.missing()

    def differences(self, trees: Sequence[Path]) -> list[bytes | None]:
        """Return what ``git status`` says of each, ignored files included; None where git cannot tell."""
        options = ("--porcelain", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
        return side_by_side(lambda tree: self.runner.begin("status", *options, cwd=tree), trees)

    def reset(self, tree: Path, backdate_ns: int) -> None:
        """Give a worktree the files of its commit."""
        self._fill_one(tree, backdate_ns)

    def _fill_by_git(self, trees: Sequence[Path], backdate_ns: int) -> None:
        from concurrent.futures import ThreadPoolExecutor

        if len(trees) == 1 or self._jobs == 1:
            for tree in trees:
                self._fill_one(tree, backdate_ns)
            return
        joined = (self.runner.work(),)
        with ThreadPoolExecutor(
            min(self._jobs, len(trees)), initializer=self.runner.help_with, initargs=joined
        ) as pool:
            work = [pool.submit(self._fill_one, tree, backdate_ns) for tree in trees]
            try:
                for item in work:
                    item.result()
            except BaseException:
                for item in work:
                    item.cancel()
                self.stop_all()  # a tree that fails, or a signal, ends the others now
                raise

    def _fill_one(self, tree: Path, backdate_ns: int) -> None:
        from swarm.git.shortcuts.index import backdate

        what = f"cannot write the files of {tree.name}"
        # Never with checkout.workers: git then loses encodings that a folder's own .gitattributes asks for.
        self.runner.run("reset", "--hard", "--no-recurse-submodules", "--quiet", cwd=tree, what=what)
        # Files and index of the same second are "racily clean": git would read and hash every file
        # again at each status. Files that are older than the index are believed.
        admin = gitdir.pointer_of(tree)
        sha256 = self.place.object_format == "sha256"
        if admin is not None and backdate(tree, admin / "index", backdate_ns, sha256=sha256):
            return
        _backdate(tree, backdate_ns)
        self.runner.run("update-index", "-q", "--refresh", cwd=tree, ok=(0, 1), what=what)

    def unlock(self, admin: AdminDir) -> None:
        """Remove the lock of a worktree."""
        from swarm.kit import files as fsio

        fsio.unlink_if_there(admin.path / "locked")

    def lock(self, admin: AdminDir, reason: str) -> None:
        """Lock a worktree against removal, as ``git worktree lock`` does."""
        from swarm.kit import files as fsio

        fsio.write_atomic(admin.path / "locked", os.fsencode(reason + "\n" if reason else ""), 0o644)

    def begin_status(self, tree: Path) -> Started:
        """Begin to look for changes; any output is one."""
        return self.runner.begin("status", *STATUS, cwd=tree)

    def is_untouched(self) -> bool:
        """Whether the main checkout equals its commit, as far as that shows without running git."""
        from swarm.git.shortcuts import untouched

        mark, source = self._main_index()
        if source is None or mark is None or source.tree != self.place.tree or self.glance(()) is None:
            return False
        hidden = [name for name in _OWN if untouched.hides_itself(self.root / name)]
        return untouched.is_untouched(source, self.root, mark[2], hidden)

    # --- plain file views of the git directory ------------------------------------------------------

    def admin_dirs(self) -> tuple[AdminDir, ...]:
        """Return every worktree registration; git runs only where its refs are in tables."""
        return tuple(self._with_head(admin) for admin in gitdir.admin_dirs(self.common))

    def worktree(self, tree: Path) -> WorktreeEntry | None:
        """Return git's entry of one worktree, without running git; None where only ``worktrees`` can tell."""
        return gitdir.entry_of(self.common, tree)

    def own_folder(self, tree: Path) -> Path | None:
        """Return git's folder for a worktree, if git, run in that worktree, would find that folder and no other."""
        return gitdir.own_folder(self.common, tree)

    def admin_of(self, tree: Path) -> AdminDir | None:
        """Return the registration that points at *tree*."""
        admin = gitdir.admin_of(self.common, tree)
        return admin and self._with_head(admin)

    def _with_head(self, admin: AdminDir) -> AdminDir:
        return admin._replace(head=admin_head(self.runner, admin))

    def pointer_of(self, tree: Path) -> Path | None:
        """Return the registration that *tree* points at."""
        return gitdir.pointer_of(tree)

    def refuse_links(self, admin: Path) -> None:
        """Refuse a registration in whose folder git would write through a link.

        Raises:
            SymlinkInTheWay
        """
        refuse_links(self.root, {"GIT_DIR": str(admin)})


def _backdate(tree: Path, when_ns: int) -> None:
    """Give every file below *tree* the same, older, time."""
    stamp = (when_ns, when_ns)
    folders = [os.fspath(tree)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    os.utime(entry.path, ns=stamp, follow_symlinks=False)


def parse_worktrees(printed: bytes, end: bytes = b"\n") -> tuple[WorktreeEntry, ...]:
    """Read ``git worktree list --porcelain``: *end* ends a line, an empty line ends an entry.

    The last entry counts also without its empty line.
    """
    entries: list[WorktreeEntry] = []
    facts: dict[str, str] = {}
    for raw in [*printed.split(end), b""]:
        if raw:
            key, _, value = os.fsdecode(raw).partition(" ")
            facts[key] = value
            continue
        if "worktree" in facts:
            entries.append(
                WorktreeEntry(
                    path=Path(facts["worktree"]),
                    head=facts.get("HEAD", ""),
                    branch=facts.get("branch", "").removeprefix(HEADS),
                    detached="detached" in facts,
                    bare="bare" in facts,
                    locked="locked" in facts,
                    lock_reason=facts.get("locked", ""),
                    prunable="prunable" in facts,
                )
            )
        facts = {}
    return tuple(entries)
