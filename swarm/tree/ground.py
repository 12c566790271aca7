"""Where a caller stands in the tree: its folder, its branch, its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.callers import parents
from swarm.callers.errors import NotForAgents
from swarm.machine import person
from swarm.project.model import SUBTREE, WORKER

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World

#: How the session of the lead is called that nobody spawned, and what its branch is called without one.
ROOT = "root"


class Ground(NamedTuple):
    """Where a caller stands.

    Attributes:
        me: the agent that calls; None: the user.
        folder: where it works.
        branch: what is checked out there; ``root`` when that is no branch.
        base: what a new worktree starts from, for git; None: HEAD of the main checkout.
        checkout: the worktree of which that is checked out; None: the main checkout.
        depth: 1 is the root.
        line: its ancestors, the nearest first.
    """

    me: Parent | None
    session: Session | None
    agent: Agent | None
    folder: Path
    branch: str
    base: str | None
    checkout: Path | None
    depth: int
    line: tuple[Parent, ...]

    @property
    def name(self) -> str:
        """How the caller is called."""
        return self.me.address if self.me is not None else "the user"


def stand(world: World, start: Path) -> Ground:
    """Return where the caller stands.

    Args:
        start: the folder in which a person is.

    Raises:
        NotForAgents: it is an agent of another repository, or its record is gone.
    """
    who = parents.seen(world)
    if who is None:
        if person.descends_from_agent():
            raise NotForAgents("cannot find your place in the tree: your supervisor cannot be seen")
        branch = world.git.head_branch() if world.git.exists else ""
        return Ground(None, None, None, start, branch or ROOT, None, None, 1, ())
    me = parents.here(world, who)
    session = world.sessions.get(me.session) if me is not None else None
    agent = session.agent(me.agent) if session is not None and me is not None else None
    if me is None or session is None or agent is None or session.generation_of(agent) != me.generation:
        raise NotForAgents(f"cannot find your place in the tree: you are {who.address}, of which nothing is known here")
    folder = world.layout.root / agent.worktree
    own = parents.own_checkout(world)
    if own is None:
        branch = world.git.head_branch() if world.git.exists else ""
        base, checkout = None, None
    else:
        there = world.git.resolve_commit(f"refs/heads/{own.ref}") if own.ref != agent.branch else own.ref
        branch, base, checkout = (own.ref if there else agent.branch), own.ref, own.tree
    return Ground(
        me, session, agent, folder, branch or ROOT, base, checkout, depth_of(world, session), parents.line_of(session)
    )


def depth_of(world: World, session: Session) -> int:
    """Return how deep the agents of a session are; 1 is the root."""
    if session.depth:
        return session.depth
    parent = session.parent
    above = world.sessions.get(parent.session) if parent is not None else None
    if parent is None:
        return 1
    return (
        depth_of(world, above) + 1 if above is not None and above.name != session.name else len(session.ancestors) + 2
    )


def refuse_leaf(ground: Ground, attempt: str) -> None:
    """Refuse a worker, which has no children.

    Raises:
        NotForAgents
    """
    if ground.session is not None and ground.session.kind == WORKER:
        raise NotForAgents(
            f"{attempt}: you are the worker {ground.name}, and workers have no children",
            hint="do the work yourself, or tell your parent: swarm notify-parent failure 'TEXT'",
        )


def is_lead(session: Session) -> bool:
    """Whether a session is that of a spawned lead."""
    return session.kind == SUBTREE
