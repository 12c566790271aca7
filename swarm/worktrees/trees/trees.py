"""Working trees: look, save and restore, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.git.content.walk import walk
from swarm.git.errors import GitBroken
from swarm.git.history import commits as commits_between
from swarm.git.history import landed as content_landed
from swarm.git.plumbing import GITLINK
from swarm.worktrees.trees import halfmade
from swarm.worktrees.trees.back import TreeBack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.git.history import Landed
    from swarm.git.values import Commit


class Trees(TreeBack):
    """Looks at, saves and restores the working trees of one repository. Implements ``ports.Trees``."""

    def foreign(self, tree: Path, commit: str, placed: Iterable[str]) -> tuple[str, ...]:
        """Return files in a half-made tree that neither git nor swarm can have written.

        git was writing the files of *commit* when it died, so a file may be missing or cut short.
        Where the repository is too damaged to tell, every file counts as such.
        """
        found = walk(tree)
        ours = set(placed)
        others = [path for path in found.files if path not in ours]
        try:
            entries = self._tree_entries(commit) if others else {}
            found.set_apart(entries)
            others = [path for path in others if path in found.files]
            strange = [path for path in others if path not in entries]
            known = [path for path in others if path in entries]
            strange += halfmade.unlike_checkout(self._git, self._common, tree, entries, known)
        except GitBroken:
            strange = others
        return tuple(sorted((*strange, *found.nested)))

    def landed(self, asked: Sequence[tuple[str, str]], target: str) -> tuple[Landed, ...]:
        """Return for each (tip, base) how *target* contains the commits since *base*; empty if it does not."""
        return content_landed(self._git, asked, target, self._walk)

    def commits(self, tip: str, base: str) -> tuple[Commit, ...]:
        """Return the commits of *tip* that *base* lacks, newest first, at most fifty."""
        return commits_between(self._git, self._git.cwd, tip, base)

    def changed_submodules(self, tree: Path, env: Mapping[str, str]) -> Iterator[str]:
        """Give the submodules with changes that git finds only by the programs that these name."""
        for mode, oid, _, path in self._entries(env):
            if mode == GITLINK and self._look_into(tree / path, oid).changed:
                yield path
