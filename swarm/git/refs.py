"""Commits and refs of a repository."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.git.base import Base
from swarm.git.errors import GitFailed, RefConflict
from swarm.git.running.explain import cause_of
from swarm.git.running.started import Started, side_by_side
from swarm.kit import files
from swarm.project.layout import HEADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from swarm.git.running.runner import GitRunner
    from swarm.project.model import AdminDir

_OBJECT_TYPES = frozenset({b"commit", b"tree", b"blob", b"tag"})


def admin_head(runner: GitRunner, admin: AdminDir) -> str:
    """Return the ``HEAD`` of a worktree: ``ref: NAME`` or a commit. Where refs are in tables, git reads it."""
    if admin.head != gitdir.STUB:
        return admin.head
    env = {"GIT_DIR": str(admin.path)}
    code, out, _ = runner.attempt("symbolic-ref", "--quiet", "HEAD", env=env)
    if code == 0:
        return "ref: " + os.fsdecode(out.removesuffix(b"\n"))
    code, out, _ = runner.attempt("rev-parse", "--verify", "--quiet", "HEAD", env=env)
    return os.fsdecode(out.removesuffix(b"\n")) if code == 0 else ""


def _is_id(name: str) -> bool:
    """Whether a name is a commit's own: what it means never changes."""
    return len(name) in (40, 64) and not name.strip("0123456789abcdef")


class Refs(Base):
    """Read names of commits (branches, refs, revisions), and change refs, all or none."""

    def resolve_commit(self, name: str) -> str | None:
        """Return the commit that *name* means, or None."""
        if name.startswith("-") or "\0" in name or not name:
            return None
        if name.startswith(":/"):  # all that follows is the text to look for
            code, out, _ = self.runner.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", name)
            name = out.decode("ascii").strip() if code == 0 else ""
        code, out, _ = self.runner.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}")
        found = out.decode("ascii").strip()
        return found if code == 0 and found.isalnum() else None  # `^main` means everything but that

    def commit_trouble(self, name: str) -> str:
        """Return why a name means no commit, in git's words; nothing where git takes it for something else."""
        if name.startswith("-") or "\0" in name or not name:
            return ""
        code, _, err = self.runner.attempt("rev-list", "-1", "--no-walk", "--end-of-options", name, "--")
        return err.decode("utf-8", "replace").strip() if code else ""

    def head_trouble(self) -> str:
        """Return why HEAD is no commit: git's words, or nothing when there simply is none yet."""
        code, _, err = self.runner.attempt("log", "-1", "--format=%H", "--no-show-signature")
        text = err.decode("utf-8", "replace").strip()
        return "" if code == 0 or "does not have any commits yet" in text else cause_of(code, text)

    def head_branch(self) -> str | None:
        """Return the branch of the main checkout; None when detached. It may have no commit yet."""
        text = gitdir.head_of(self.common)
        if text.startswith(f"ref: {HEADS}") and text != gitdir.STUB:
            return text.removeprefix(f"ref: {HEADS}")
        code, out, _ = self.runner.attempt("symbolic-ref", "--quiet", "HEAD")
        return os.fsdecode(out.removesuffix(b"\n")).removeprefix(HEADS) if code == 0 else None

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Return full ref name → object id for everything below the prefixes (or exactly so named)."""
        out = self.runner.ask("for-each-ref", "--format=%(objectname) %(refname)", *prefixes)
        pairs = (line.split(" ", 1) for line in os.fsdecode(out).splitlines())
        return {name: oid for oid, name in pairs}

    def refs_around(self, names: Sequence[str], folder: str) -> frozenset[str]:
        """Return which of these refs there are, and all those below *folder*."""
        found = gitdir.refs_around(self.common, names, folder)
        if found is None:
            # Brackets keep git from listing refs below a name.
            exactly = (f"{name[:-1]}[{name[-1]}]" for name in names)
            found = frozenset(self.refs(*exactly, f"{folder}/"))
        return found

    def change_refs(
        self, *, create: Mapping[str, str] | None = None, delete: Mapping[str, str] | None = None, reason: str
    ) -> None:
        """Create and delete refs in one transaction: all or none, in the order given.

        Args:
            create: name → object id; none of the names may exist.
            delete: name → the object id it must still have.

        Raises:
            BranchExists, RefConflict, GitBusy, GitFailed: nothing was changed.
        """
        lines = [f"create {name}\0{oid}\0" for name, oid in (create or {}).items()]
        lines += [f"delete {name}\0{oid}\0" for name, oid in (delete or {}).items()]
        if not lines:
            return
        try:
            self.runner.run(
                *("update-ref", "--no-deref", "-m", reason, "--stdin", "-z"),
                stdin=os.fsencode("".join(lines)),
                what="cannot change the branches",
                meanwhile=self._look_on,
            )
        except GitFailed as error:
            if "exists; cannot create" in (error.details or ""):
                raise RefConflict(error.message, details=error.details) from error
            raise
        for name in delete or {}:
            # git does not mind when it cannot remove the log of a ref that it deletes.
            (self.common / "logs" / name).unlink(missing_ok=True)

    def tips(self, *names: str) -> dict[str, str]:
        """Return the commits of exactly these refs, as far as they exist."""
        found = gitdir.tips(self.common, names)
        return found if len(found) == len(names) else self.refs(*names)

    def point_head(self, admin: AdminDir, name: str) -> None:
        """Let the ``HEAD`` of a worktree say a branch, which may have no commit yet."""
        if (admin.path / "reftable").is_dir():
            self.runner.run("symbolic-ref", "HEAD", name, env={"GIT_DIR": str(admin.path)})
        else:
            files.write_atomic(admin.path / "HEAD", os.fsencode(f"ref: {name}\n"), 0o644, durable=False)

    def drop_ref(self, name: str, tip: str, *, reason: str) -> None:
        """Delete one ref that must still say *tip*."""
        if not gitdir.drop_ref(self.common, name, tip):
            self.change_refs(delete={name: tip}, reason=reason)

    def objects(self, names: Sequence[str]) -> dict[str, str]:
        """Return name → object id for those of *names* that mean an object, such as ``HEAD:src``; one git for all."""
        asked = [name for name in dict.fromkeys(names) if name and name[0] != "-" and not set(name) & {"\n", "\0"}]
        if not asked:
            return {}
        lines = os.fsencode("".join(f"{name}\n" for name in asked))
        out = self.runner.ask("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=lines)
        answers = (line.split(b" ") for line in out.splitlines())
        return {
            name: answer[1].decode("ascii")
            for name, answer in zip(asked, answers, strict=True)
            if answer[0] in _OBJECT_TYPES and len(answer) == 2  # else "<name> missing"
        }

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether *new* has everything that *old* has."""
        return self.runner.attempt("merge-base", "--is-ancestor", old, new)[0] == 0

    def count(self, new: str, old: str) -> int:
        """How many commits *new* has that *old* does not."""
        return int(self.runner.ask("rev-list", "--count", new, f"^{old}"))

    def counts(self, pairs: Sequence[tuple[str, str]]) -> list[int | None]:
        """Return of each (new, old) how many commits *new* has that *old* does not; None where git cannot tell."""

        def begin(pair: tuple[str, str]) -> Started:
            return self.runner.begin("rev-list", "--count", pair[0], f"^{pair[1]}")

        asked = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1] and pair not in self._counted]
        said = dict(zip(asked, side_by_side(begin, asked), strict=True))
        found = {pair: int(printed) for pair, printed in said.items() if printed is not None}
        self._counted |= {pair: number for pair, number in found.items() if all(map(_is_id, pair))}
        return [0 if pair[0] == pair[1] else found.get(pair, self._counted.get(pair)) for pair in pairs]

    def tracked(self, commit: str, paths: Iterable[str]) -> frozenset[str]:
        """Return which of *paths* the commit has."""
        out = self.runner.ask(
            *("ls-tree", "-z", "--name-only", "--full-tree", commit, "--", *paths),
            what=f"cannot read the files of commit {commit[:12]}",
        )
        return frozenset(os.fsdecode(name) for name in out.split(b"\0") if name)

    def first_reflog_message(self, branch: str) -> str:
        """Return the message with which a branch was made; empty when it is not recorded."""
        path = self.common / "logs" / "refs" / "heads" / branch
        try:
            with path.open("rb") as file:
                return file.readline(4096).decode("utf-8", "replace").partition("\t")[2].strip()
        except OSError:
            return ""

    def ref_locks(self, refs: Iterable[str]) -> tuple[Path, ...]:
        """Return the lock files a change of *refs* may leave when git is killed."""
        return (*gitdir.ref_locks(self.common, refs), self.common / "config.lock")

    def remove_stale_locks(self, locks: Iterable[Path], since_ns: int, aside: Path) -> list[str]:
        """Move away lock files of ours that a killed git left; return those that stay."""
        return gitdir.remove_stale_locks(self.common, self.root, locks, since_ns, aside)

    def prune_empty_ref_folders(self, prefix: str) -> None:
        """Remove empty folders that deleted refs and registrations left."""
        from swarm.kit import files as fsio

        gitdir.prune_empty_ref_folders(self.common, prefix)
        fsio.remove_empty(self.common / "worktrees")  # git does the same after the last worktree
