"""The request of a new set of worktrees, and facts about the history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from swarm.callers import parents
from swarm.project import names
from swarm.project.model import OWN, SHARED

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.agents.launching import launch_request
    from swarm.project.model import Parent
    from swarm.project.world import World
    from swarm.roles.options import RoleOptions
    from swarm.roles.role import Role


@dataclass(frozen=True, slots=True)
class Fork:
    """The agent whose worktree a new one of its session starts from.

    Attributes:
        base: the commit that this agent started from.
        snapshot: a commit of its worktree as it is, with what is not committed.
        paths: the files in which that differs from its last commit.
    """

    source: str
    base: str
    snapshot: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent works.

    Attributes:
        folder: absolute.
        branch: of its worktree; empty: it has none.
        tree: whether the folder is a new worktree of its own, or one that is there and stays as it is.
    """

    folder: Path
    branch: str = ""
    tree: str = OWN


@dataclass(frozen=True, slots=True)
class Child:
    """Where in the tree a spawn puts a new session.

    Attributes:
        kind: a subtree, or a worker.
        parent: the agent that spawns it; None: the user does.
        ancestors: those above the parent, the nearest first.
        ref, commit: what is checked out in the folder of a worker when it begins; a worktree has its own.
        has_layout: the folder of a worker is an agent's worktree, or the main checkout; who works there is written.
    """

    kind: str
    depth: int
    parent: Parent | None
    ancestors: tuple[Parent, ...] = ()
    ref: str = ""
    commit: str = ""
    has_layout: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a new set.

    Attributes:
        roles: for each agent its role's text; None puts no instructions in.
        base: branch, tag or commit; None means where the main checkout is.
        checkout: the agent's worktree of which *base* is what is checked out; None: it is not.
        places: for each agent where it works; empty: each in a worktree of its own, named after it.
        add: the session may be there already, and gets these agents.
        launch: what is started in panes; None makes worktrees only.
        setup: for each agent what its role says, of which the setup counts; None: no setup.
        fork: the agent is another one of this session, and starts from an agent's worktree.
        child: the session is spawned, and has a place in the tree.
    """

    session: str
    agents: tuple[names.AgentSpec, ...]
    roles: tuple[Role | None, ...]
    base: str | None = None
    launch: launch_request.LaunchRequest | None = None
    setup: tuple[RoleOptions, ...] | None = None
    checkout: Path | None = None
    fork: Fork | None = None
    places: tuple[Place, ...] = ()
    add: bool = False
    child: Child | None = None

    @property
    def makes_trees(self) -> bool:
        """Whether any of the agents gets a worktree."""
        return not self.places or any(one.tree != SHARED for one in self.places)

    def places_in(self, world: World) -> tuple[Place, ...]:
        """Return for each agent where it works."""
        prefix = world.settings.worktrees.branch_prefix
        return self.places or tuple(
            Place(world.layout.worktree(one.name, self.session), names.branch_name(one.name, self.session, prefix))
            for one in self.agents
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about the history for the plan; None is not known yet.

    Attributes:
        commit: where the worktrees start.
        content: its tree.
        folders: which of swarm's folders the project has in its history.
        file: whether the project has the instructions file in its history.
        refs: those around the branches that are wanted, and what the journal's mark was before they were read.
    """

    commit: str | None = None
    content: str = ""
    folders: tuple[str, ...] | None = None
    file: bool | None = None
    refs: tuple[tuple[int, int], frozenset[str]] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Where a set may start: nothing stands against it.

    Attributes:
        base_ref: what the user calls it.
    """

    base_ref: str
    commit: str
    facts: Facts


def pays(world: World, request: Request) -> Parent | None:
    """Return the agent on whose budget those of new agents are drawn; None: a person starts them."""
    there = world.sessions.get(request.session)
    if there is not None:
        return parents.heir(world, there)
    return request.child.parent if request.child else parents.starter(world)


def is_run(request: Request) -> bool:
    """Whether it is the one agent of ``swarm run``."""
    return bool(request.places) and not request.child


def verb(request: Request) -> str:
    """Return the verb that the log shows."""
    if request.child:
        return "spawn"
    return "fork" if request.fork else "create" if request.launch is None else "start"
