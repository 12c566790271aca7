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
    from swarm.project.model import Agent, Session
    from swarm.project.world import World


class Checkout(NamedTuple):
    """A worktree with its branch or commit."""

    tree: Path
    ref: str


def seen(world: World) -> Identity | None:
    """Return the agent that calls: the one that a server acts for, else the one to which this process belongs."""
    return world.acting or whoami(world.environ, state=str(world.layout.state))


def starter(world: World) -> Parent | None:
    """Return the agent of this repository to which this process belongs; None: a person, or one of elsewhere."""
    who = seen(world)
    return here(world, who) if who is not None else None


def line_above(world: World) -> tuple[Parent, ...]:
    """Return the ancestors of the agent that calls, the nearest first; none of a person."""
    me = starter(world)
    session = world.sessions.get(me.session) if me is not None else None
    return line_of(session) if session is not None else ()


def line_of(session: Session) -> tuple[Parent, ...]:
    """Return whom the agents of a session work for: their parent, then the ancestors."""
    return (session.parent, *session.ancestors) if session.parent is not None else ()


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
    return session.parent if session.parent is not None and is_there(world, session.parent) else None


def heir(world: World, session: Session) -> Parent | None:
    """Return the agent that is told of a session: its parent, else the nearest ancestor there is; None: the user."""
    return next((one for one in line_of(session) if is_there(world, one)), None)


def is_there(world: World, one: Parent) -> bool:
    """Whether an agent's record is there, of this very run of its name."""
    return find(world, one) is not None


def find(world: World, one: Parent) -> tuple[Session, Agent] | None:
    """Return the record of an agent, if it is of this very run of its name."""
    session = world.sessions.get(one.session)
    agent = session.agent(one.agent) if session is not None else None
    if session is None or agent is None or session.generation_of(agent) != one.generation:
        return None
    return session, agent
