"""The class ``Swarm``: one object per repository, one method per everyday verb, and a namespace for each subject.

Nothing here prints, exits, or changes the process's directory or environment; what a command line
shows is what these methods return or raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.door import open_repository
from swarm.api.events import Waiting
from swarm.api.forking import Forking
from swarm.api.live import Following
from swarm.api.merging import Merging
from swarm.api.running import Running

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Self, Unpack

    from swarm.api.approvals import Approvals
    from swarm.api.boxes import Boxes
    from swarm.api.bridges import Bridges
    from swarm.api.config import Config
    from swarm.api.delivery import Delivery
    from swarm.api.events import Events
    from swarm.api.hooks import Hooks
    from swarm.api.messages import Messages
    from swarm.api.operations import Operations
    from swarm.api.panes import Panes
    from swarm.api.pods import Pods
    from swarm.api.queues import Queues
    from swarm.api.roles import Roles
    from swarm.api.salvage import Salvage
    from swarm.api.sandbox import Sandbox
    from swarm.api.services import Services
    from swarm.api.sessions import Sessions
    from swarm.api.tasks import Tasks
    from swarm.api.tree import Tree
    from swarm.api.usage import Usage
    from swarm.api.workflows import Workflows
    from swarm.api.worktrees import Worktrees
    from swarm.messages.office.post import Sent
    from swarm.messages.send_options import SendOptions


class Swarm(Running, Forking, Waiting, Following, Merging):
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
            progress: called with each step in a few words.

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
    def bridges(self) -> Bridges:
        """Gateways between your inbox and programs of yours; ``swarm.bridges()`` returns all of them."""
        from swarm.api.bridges import Bridges

        return Bridges(self._opened)

    @property
    def events(self) -> Events:
        """The log of events; and taken events that wait to be finished: ``swarm.wait_for_event`` takes them."""
        from swarm.api.events import Events

        return Events(self._opened)

    @property
    def boxes(self) -> Boxes:
        """The boxes of agents: what is seen in them, and what was refused."""
        from swarm.api.boxes import Boxes

        return Boxes(self._opened)

    @property
    def hooks(self) -> Hooks:
        """Events and requests from the hooks of agents' programs; for swarm's own commands."""
        from swarm.api.hooks import Hooks

        return Hooks(self._opened)

    @property
    def config(self) -> Config:
        """The settings: ``swarm.config.settings`` holds those in effect, ``swarm.config()`` lists all that exist."""
        from swarm.api.config import Config

        return Config(self._world.settings)

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

    @property
    def delivery(self) -> Delivery:
        """Notices of swarm's launchers to agents and the user: nudges, heartbeats, ends of agents."""
        from swarm.api.delivery import Delivery

        return Delivery(self._opened)

    @property
    def operations(self) -> Operations:
        """The history; ``swarm.operations()`` returns the operations, oldest first."""
        from swarm.api.operations import Operations

        return Operations(self._opened)

    @property
    def panes(self) -> Panes:
        """The tmux panes of agents."""
        from swarm.api.panes import Panes

        return Panes(self._opened)

    @property
    def pods(self) -> Pods:
        """Teams as files; ``swarm.pods()`` returns the templates, and ``swarm.pods.launch`` starts one."""
        from swarm.api.pods import Pods

        return Pods(self._opened)

    @property
    def salvage(self) -> Salvage:
        """Saved work; ``swarm.salvage()`` lists it, and ``swarm.restore`` brings it back."""
        from swarm.api.salvage import Salvage

        return Salvage(self._opened)

    @property
    def sandbox(self) -> Sandbox:
        """Boxes: ``swarm.sandbox.check()`` makes one, and says why where that cannot be done."""
        from swarm.api.sandbox import Sandbox

        return Sandbox(self._world.environ)

    @property
    def sessions(self) -> Sessions:
        """The records of sessions; ``swarm.sessions()`` returns all of them."""
        from swarm.api.sessions import Sessions

        return Sessions(self._opened)

    @property
    def services(self) -> Services:
        """The servers of the swarm directory; ``swarm.services()`` returns all of them."""
        from swarm.api.services import Services

        return Services(self._opened)

    @property
    def tasks(self) -> Tasks:
        """Work for agent programs without a terminal; ``swarm.tasks()`` returns what is not over."""
        from swarm.api.tasks import Tasks

        return Tasks(self._opened)

    @property
    def tree(self) -> Tree:
        """The tree of agents: spawn subtrees and workers, and learn what comes of them."""
        from swarm.api.tree import Tree

        return Tree(self._opened)

    @property
    def usage(self) -> Usage:
        """Tokens, cost and time; ``swarm.usage()`` returns the report."""
        from swarm.api.usage import Usage

        return Usage(self._opened)

    @property
    def workflows(self) -> Workflows:
        """Kinds of work; ``swarm.workflows()`` returns all of them."""
        from swarm.api.workflows import Workflows

        return Workflows(self._opened)

    @property
    def worktrees(self) -> Worktrees:
        """The worktrees of agents; ``swarm.worktrees()`` returns all of them."""
        from swarm.api.worktrees import Worktrees

        return Worktrees(self._opened)
