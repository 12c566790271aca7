"""Who is whose child: read from the records, and from nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.callers import parents
from swarm.project.model import Parent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.project.model import Agent, Session


def as_parent(session: Session, agent: Agent) -> Parent:
    """Return an agent as the records of its children name it."""
    return Parent(agent.name, session.name, session.generation_of(agent))


def parent_from(words: Sequence[str]) -> Parent:
    """Return an agent as the journal names it."""
    agent, session, generation = words
    return Parent(agent, session, generation)


def children(sessions: Sequence[Session], of: Parent | None) -> Iterator[Session]:
    """Yield the sessions whose parent this is; of the user those that the user spawned."""
    for one in sessions:
        if one.parent == of and (of is not None or one.is_child):
            yield one


def below(sessions: Sequence[Session], of: Parent) -> tuple[Session, ...]:
    """Return every session below an agent, parents before their children."""
    return tuple(one for one in _by_depth(sessions) if of in parents.line_of(one))


def below_session(sessions: Sequence[Session], top: Session) -> tuple[Session, ...]:
    """Return a session and every one below its agents, parents before their children."""
    mine = {as_parent(top, agent) for agent in top.agents}
    return (top, *(one for one in _by_depth(sessions) if mine & set(parents.line_of(one))))


def root_of(sessions: Sequence[Session], session: Session) -> Parent | None:
    """Return the root of the tree in which the agents of a spawned session are; None: the user."""
    line = parents.line_of(session)
    top = next((one for one in sessions if line and one.name == line[-1].session), None)
    return None if not line or (top is not None and top.is_child) else line[-1]


def _by_depth(sessions: Sequence[Session]) -> list[Session]:
    return sorted(sessions, key=lambda one: (len(parents.line_of(one)), one.created_ms, one.name))
