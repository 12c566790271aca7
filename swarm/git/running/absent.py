"""A stand-in for git outside of a repository: it has nothing, and refuses verbs that need a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from swarm.git.errors import NotARepo
from swarm.git.repository import Git
from swarm.git.running.runner import GitRunner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from swarm.project.model import WorktreeEntry


class NoRunner(GitRunner):
    """Runs no git at all."""

    def _start(self, *_args: object, **_how: object) -> NoReturn:
        raise NotARepo(
            f"not a git repository: {self.cwd}",
            hint="change to a repository, or name one with -C DIR",
        )


class NoGit(Git):
    """No worktrees, no branches, no commits."""

    exists = False

    def require(self, minimum: tuple[int, int], purpose: str) -> None:  # noqa: ARG002  # the signature is git's
        """Refuse: this needs a repository.

        Raises:
            NotARepo
        """
        raise NotARepo(
            f"cannot {purpose}: {self.root} is not in a git repository",
            hint="change to a repository, or name one with -C DIR",
        )

    def worktrees(self) -> tuple[WorktreeEntry, ...]:
        """Return none."""
        return ()

    def refs(self, *prefixes: str) -> dict[str, str]:  # noqa: ARG002  # the signature is git's
        """Return none."""
        return {}

    def change_refs(
        self, *, create: Mapping[str, str] | None = None, delete: Mapping[str, str] | None = None, reason: str
    ) -> None:
        """Refuse any change."""
        if create or delete:
            self.require((0, 0), reason)

    def resolve_commit(self, name: str) -> str | None:  # noqa: ARG002  # the signature is git's
        """Return that there is none."""
        return None

    def ref_locks(self, refs: Iterable[str]) -> tuple[Path, ...]:  # noqa: ARG002  # the signature is git's
        """Return none."""
        return ()

    def uses_worktree_config(self) -> bool:
        """Return that nothing is configured."""
        return False

    def is_untouched(self) -> bool:
        """Return that nothing could have changed."""
        return True
