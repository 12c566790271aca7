"""The class ``Swarm``: one object per repository, one method per everyday verb, and a namespace for each subject.

Nothing here prints, exits, or changes the process's directory or environment; what a command line
shows is what these methods return or raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.agents import Agents
from swarm.api.delivery import Delivery
from swarm.api.design import Design
from swarm.api.door import open_repository
from swarm.api.events import Waiting
from swarm.api.merging import Merging
from swarm.api.usage import Usage
from swarm.kit import files

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any, Self, Unpack

    from swarm.api.approvals import Approvals
    from swarm.api.config import Config
    from swarm.api.events import Events
    from swarm.api.hooks import Hooks
    from swarm.api.messages import Messages
    from swarm.api.queues import Queues
    from swarm.api.roles import Roles
    from swarm.kit.errors import SwarmError
    from swarm.messages.office.post import Sent
    from swarm.messages.send_options import SendOptions
    from swarm.project.model import Session
    from swarm.roles.role import Role


class Swarm(Agents, Delivery, Waiting, Merging, Usage, Design):
    """swarm in one repository. Make it with ``Swarm.open``.

    Example:
        >>> from swarm import Swarm
        >>> swarm = Swarm.open("/path/to/project")          # doctest: +SKIP
        >>> swarm.create("feature-x", ["researcher", "developer"]).paths()  # doctest: +SKIP
    """

    def __repr__(self) -> str:
        return f"<Swarm {self.root}>"

    @classmethod
    def open(
        cls,
        root: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Open the repository around *root*.

        Args:
            root: any folder in it, also one of a linked worktree; default: the current directory.
            environ: instead of the process's environment.
            flags: settings that win over all files, such as ``{"worktrees.layout": "role"}``.
            progress: told in a few words what is being done.

        Raises:
            NotARepo, BareRepository, GitBroken, RepositoryOwner, GitMissing: there is nothing to work with.
            ConfigProblem: a configuration file is wrong.
        """
        return cls(open_repository(root, environ, flags, progress))

    @property
    def root(self) -> Path:
        """The main checkout."""
        return self._root

    @property
    def is_changing(self) -> bool:
        """Whether something is being changed right now, by any thread that uses this."""
        return self._opened.held > 0

    @property
    def approvals(self) -> Approvals:
        """Permission requests and questions of agents; ``swarm.approvals()`` returns those that wait."""
        from swarm.api.approvals import Approvals

        return Approvals(self._opened)

    @property
    def events(self) -> Events:
        """Events of agents that were taken and wait to be settled; ``swarm.wait_for_event`` takes them."""
        from swarm.api.events import Events

        return Events(self._opened)

    @property
    def hooks(self) -> Hooks:
        """Events and requests from the hooks of agents' programs; for swarm's own commands."""
        from swarm.api.hooks import Hooks

        return Hooks(self._opened)

    @property
    def config(self) -> Config:
        """The settings: ``swarm.config.settings`` are those in effect, ``swarm.config()`` what can be set."""
        from swarm.api.config import Config

        return Config(self._world.settings)

    def sessions(self) -> tuple[Session, ...]:
        """Return every session's record. Never writes, never waits."""
        return self._sessions()

    def unreadable(self) -> tuple[SwarmError, ...]:
        """Return what is wrong with session records that cannot be read; those sessions are missing in a status."""
        with files.os_errors("cannot read the sessions"):
            return self._world.sessions.scan()[1]

    def session(self, name: str) -> Session:
        """Return one session's record.

        Raises:
            SessionNotFound
        """
        return self._session(name)

    def history(self) -> tuple[dict[str, Any], ...]:
        """Return the operations done in this repository, oldest first."""
        return self._world.journal.history()

    def role(self, name: str) -> Role:
        """Return a role by name.

        Raises:
            RoleNotFound
        """
        return self.roles.get(name)

    @property
    def messages(self) -> Messages:
        """Messages and inboxes: send, take, acknowledge, look."""
        from swarm.api.messages import Messages

        return Messages(self._post)

    def send(self, to: str | Iterable[str], body: str, **options: Unpack[SendOptions]) -> tuple[Sent, ...]:
        """Send a message; when this returns it is on the disk in every recipient's inbox.

        See ``swarm.messages.send`` for recipients, options and errors.

        Example:
            >>> swarm.send("reviewer@feature-x", "please look at parser.py")  # doctest: +SKIP
        """
        return self.messages.send(to, body, **options)

    @property
    def queues(self) -> Queues:
        """Task queues; ``swarm.queues()`` returns all of them."""
        from swarm.api.queues import Queues

        return Queues(self._opened)

    @property
    def roles(self) -> Roles:
        """Everything about roles; ``swarm.roles()`` returns all roles."""
        from swarm.api.roles import Roles

        return Roles(self._roles, self._world.environ)

    def role_names(self) -> tuple[str, ...]:
        """Return the names of the roles, without reading them."""
        return self.roles.names()

    def unfinished(self) -> tuple[str, ...]:
        """Return the ids of interrupted operations. Never writes, never waits."""
        return self._world.journal.unfinished()
