"""Drivers that only some verbs need; each is made on first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from swarm.git.discover import Place
    from swarm.git.running.runner import GitRunner
    from swarm.merging.checkout import Merging
    from swarm.project.config.settings import Settings
    from swarm.project.layout import Layout
    from swarm.project.ports import Terminal
    from swarm.worktrees.setup.preparing import Preparing
    from swarm.worktrees.trees.trees import Trees
    from swarm.worktrees.trees.uncommitted import Uncommitted


class Parts:
    """The parts of a ``World`` other than git and swarm's own records."""

    def __init__(
        self,
        place: Place,
        runner: GitRunner,
        layout: Layout,
        settings: Settings,
        environ: Mapping[str, str],
    ) -> None:
        self._place = place
        self._runner = runner
        self._layout = layout
        self._settings = settings
        self._environ = environ

    @cached_property
    def trees(self) -> Trees:
        """Working trees as git objects."""
        from swarm.worktrees.trees.trees import Trees

        return Trees(self._runner, self._place.common, self._place.object_format)

    @cached_property
    def uncommitted(self) -> Uncommitted:
        """The reader of uncommitted changes in worktrees."""
        from swarm.worktrees.trees.uncommitted import Uncommitted

        def submodules(tree: Path, env: Mapping[str, str]) -> Iterator[str]:
            return self.trees.changed_submodules(tree, env)

        return Uncommitted(self._runner, self._place.common, submodules)

    @cached_property
    def merging(self) -> Merging:
        """Merges and diffs."""
        from swarm.merging.checkout import Merging

        return Merging(self._runner, self._place.common, environ=self._environ, jobs=self._settings.git.jobs)

    @cached_property
    def terminal(self) -> Terminal:
        """The tmux server."""
        from swarm.terminal.tmux import Tmux

        return Tmux(self._settings.tmux.socket, self._settings.tmux.session, self._environ)

    @cached_property
    def preparing(self) -> Preparing:
        """The driver that prepares worktrees."""
        from swarm.worktrees.setup.preparing import Preparing

        own = (self._layout.state.name, self._settings.worktrees.base_path)
        return Preparing(self._runner, self._place.root, own)

    @cached_property
    def ignore_text(self) -> bytes:
        """The text of ``.gitignore`` in swarm's folders."""
        from swarm.roles.find import ignore_template

        return ignore_template()
