"""The parent of a session: recorded at the start, notified when an agent ends.

It is read from the machine, never from an argument or the environment: see ``machine/identity.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.git import owner
from swarm.machine.identity import whoami
from swarm.project import layout as places
from swarm.project.model import Parent

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.machine.identity import Identity
    from swarm.project.model import Session
    from swarm.project.world import World


class Checkout(NamedTuple):
    """A worktree with its branch or commit."""

    tree: Path
    ref: str


def starter(world: World) -> Parent | None:
    """Return the agent of this repository to which this process belongs; None: a person, or one of elsewhere."""
    who = whoami(world.environ, state=str(world.layout.state))
    return here(world, who) if who is not None else None


def here(world: World, who: Identity) -> Parent | None:
    """Return an agent as the records of this repository know it; None when it is of elsewhere."""
    try:
        same = world.layout.state.samefile(who.state)
    except OSError:
        return None
    return Parent(who.agent, who.session, who.generation) if same and who.generation else None


def own_checkout(world: World) -> Checkout | None:
    """Return the worktree of the agent to which this process belongs, and where it is; None for everybody else."""
    parent = starter(world)
    session = world.sessions.get(parent.session) if parent is not None else None
    agent = session.agent(parent.agent) if session is not None and parent is not None else None
    admin = owner.own_admin(world, agent) if agent is not None else None
    if agent is None or admin is None or not admin.says_head:
        return None
    return Checkout(world.layout.root / agent.worktree, admin.head.removeprefix(f"ref: {places.HEADS}"))


def living(world: World, session: Session) -> Parent | None:
    """Return the agent that started a session, if it is still there: that very run of its name.

    Whether its program runs does not matter; what it is told waits for it.
    """
    parent = session.parent
    if parent is None:
        return None
    found = world.sessions.get(parent.session)
    agent = found.agent(parent.agent) if found is not None else None
    if found is None or agent is None or found.generation_of(agent) != parent.generation:
        return None
    return parent
