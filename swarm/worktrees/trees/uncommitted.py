"""Uncommitted changes of worktrees, as ``git status`` shows them; several trees at once."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git.errors import GitBroken, GitFailed
from swarm.git.running import standin
from swarm.git.running.runner import OUTSIDE
from swarm.git.running.started import side_by_side
from swarm.git.shortcuts.index import may_hold_gitlinks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from swarm.git.running.runner import GitRunner
    from swarm.git.running.started import Started


class Uncommitted:
    """Asks git about the worktrees of one repository.

    Args:
        submodules: gives the changed submodules of a tree with its environment, those that this git does not look into.
    """

    def __init__(
        self, git: GitRunner, common: Path, submodules: Callable[[Path, Mapping[str, str]], Iterable[str]]
    ) -> None:
        self._git = git
        self._common = common
        self._submodules = submodules

    def lines(self, tree: Path, admin: Path) -> tuple[str, ...]:
        """Return the lines of ``git status``, as two letters and the path.

        Raises:
            GitFailed, GitBroken
        """
        with contextlib.ExitStack() as stack:
            asked, env = self._begin(stack, tree, admin, "")
            lines = [os.fsdecode(item) for item in asked.result().split(b"\0") if item]
            told = {line[3:] for line in lines if line[1] != " "}
            return (*lines, *(f" M {path}" for path in self._more(tree, env) if path not in told))

    def are_any(self, trees: Sequence[tuple[Path, Path]]) -> list[bool | None]:
        """Return for each tree whether ``git status`` would show anything; None if unknown.

        Args:
            trees: (tree, its admin folder) each.
        """
        envs: dict[Path, Mapping[str, str]] = {}
        with contextlib.ExitStack() as stack:
            scratch = stack.enter_context(standin.scratch()) if trees else ""

            def begin(place: tuple[Path, Path]) -> Started:
                asked, envs[place[0]] = self._begin(stack, *place, scratch)
                return asked

            said = side_by_side(begin, trees)
            return [
                None if out is None else bool(out) or self._is_more(tree, envs[tree])
                for (tree, _), out in zip(trees, said, strict=True)
            ]

    def _begin(
        self, stack: contextlib.ExitStack, tree: Path, admin: Path, scratch: str
    ) -> tuple[Started, Mapping[str, str]]:
        place = standin.of_worktree(self._git, tree, admin, self._common, own_index=True, scratch=scratch)
        env = stack.enter_context(place)
        asked = self._git.begin("status", *OUTSIDE, "--no-renames", cwd=tree, env=env)
        stack.callback(asked.end)
        return asked, env

    def _is_more(self, tree: Path, env: Mapping[str, str]) -> bool | None:
        try:
            return any(True for _ in self._more(tree, env))
        except (GitFailed, GitBroken):
            return None

    def _more(self, tree: Path, env: Mapping[str, str]) -> Iterable[str]:
        return self._submodules(tree, env) if may_hold_gitlinks(Path(env["GIT_INDEX_FILE"])) else ()
