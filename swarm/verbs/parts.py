"""The drivers that only some verbs need, each made when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.domain.layout import Layout
    from swarm.domain.ports import Host, Merging, Preparing, Processes, Programs, Terminal, Trees
    from swarm.domain.settings import Settings
    from swarm.drivers.git import Place
    from swarm.drivers.gitrun import GitRunner


class Parts:
    """What a ``World`` is made of beside git and swarm's own records."""

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
        from swarm.drivers.trees import Trees

        return Trees(self._runner, self._place.common, self._place.object_format)

    @cached_property
    def merging(self) -> Merging:
        """Merges and diffs."""
        from swarm.drivers.merging import Merging

        return Merging(self._runner, self._place.common, environ=self._environ, jobs=self._settings.git.jobs)

    @cached_property
    def host(self) -> Host:
        """The machine."""
        from swarm.drivers.host import Host

        return Host()

    @cached_property
    def terminal(self) -> Terminal:
        """The tmux server."""
        from swarm.drivers.tmux import Tmux

        return Tmux(self._settings.tmux.socket, self._settings.tmux.session, self._environ)

    @cached_property
    def programs(self) -> Programs:
        """The agent programs."""
        from swarm.drivers.agents import AgentPrograms

        return AgentPrograms()

    @cached_property
    def processes(self) -> Processes:
        """The processes of agents."""
        from swarm.drivers.agentprocs import AgentProcesses

        return AgentProcesses()

    @cached_property
    def preparing(self) -> Preparing:
        """What makes worktrees ready."""
        from swarm.drivers.preparing import Preparing

        own = (self._layout.state.name, self._settings.worktrees.base_path)
        return Preparing(self._runner, self._place.root, own)

    @cached_property
    def ignore_text(self) -> bytes:
        """What is written as ``.gitignore`` into swarm's folders."""
        from swarm.store.roles import ignore_template

        return ignore_template()
