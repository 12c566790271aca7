"""Working trees: what is in one (`treelook`), how it is saved (`treesave`) and brought back (`treeback`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.domain.errors import GitBroken
from swarm.drivers import halfmade
from swarm.drivers.gitrun import STATUS
from swarm.drivers.history import commits as commits_between
from swarm.drivers.history import landed as content_landed
from swarm.drivers.treeback import TreeBack
from swarm.drivers.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from swarm.domain.model import Commit


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

    def landed(self, tip: str, base: str, target: str) -> str:
        """Say how the commits of *tip* since *base* are in *target*; empty when they are not."""
        return content_landed(self._git, tip, base, target)

    def commits(self, tip: str, base: str) -> tuple[Commit, ...]:
        """Return what *tip* has and *base* has not, newest first, at most fifty."""
        return commits_between(self._git, self._git.cwd, tip, base)

    def status_lines(self, tree: Path, admin: Path) -> tuple[str, ...]:
        """Return what ``git status`` shows, as its two letters and the path."""
        env = {"GIT_DIR": str(admin), "GIT_WORK_TREE": str(tree)}
        out = self._git.ask("status", *STATUS, "--no-renames", cwd=tree, env=env)
        return tuple(os.fsdecode(item) for item in out.split(b"\0") if item)
