"""List the tree from the records, and name the folders of it that no record knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.agents import completions
from swarm.callers import family, parents
from swarm.sessions import status
from swarm.tree import ground, spawn
from swarm.tree.values import Completion, TreeAgent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World
    from swarm.sessions.values import AgentStatus

#: The kind of a folder that no record knows.
NO_RECORD = "no record"
#: Where agents write down, below their worktrees, who works there; for people.
AGENTS = ".swarm/agents"


def whole(world: World, top: Parent | None, *, look: bool = True) -> tuple[TreeAgent, ...]:
    """Return the agents of the tree, parents before their children, each as deep as it stands.

    Args:
        top: only this agent and those below it; None: all.
        look: also ask git for uncommitted changes and commits.
    """
    sessions = world.sessions.scan()[0]
    if top is not None:
        own = [one._replace(agents=_only(one, top)) for one in sessions if one.name == top.session]
        chosen = [*own, *family.below(sessions, top)]
    else:
        chosen = list(sessions)
    found = {
        (one.session, one.agent.name): one
        for several in status.status(world, chosen, look=look, unread=True)
        for one in several.agents
    }
    ordered = _in_order(chosen)
    listed = [
        _entry(world, session, agent, found[session.name, agent.name], level) for session, agent, level in ordered
    ]
    return tuple(listed) if top is not None else (*listed, *_without_record(world, sessions))


def one(world: World, session: Session, agent: Agent, *, look: bool = False) -> TreeAgent:
    """Return one agent of the tree."""
    alone = session._replace(agents=(agent,))
    (found,) = status.status(world, [alone], look=look, unread=True)
    return _entry(world, session, agent, found.agents[0], 0)


def _only(session: Session, top: Parent) -> tuple[Agent, ...]:
    return tuple(agent for agent in session.agents if agent.name == top.agent)


def _in_order(sessions: Sequence[Session]) -> list[tuple[Session, Agent, int]]:
    """Return the agents with their levels, each followed by those below it."""
    names = {(one.name, agent.name) for one in sessions for agent in one.agents}
    tops = [one for one in sessions if one.parent is None or (one.parent.session, one.parent.agent) not in names]
    found: list[tuple[Session, Agent, int]] = []

    def add(session: Session, level: int) -> None:
        for agent in session.agents:
            if level > len(sessions):  # records that name each other as parents
                return
            found.append((session, agent, level))
            for child in sorted(family.children(sessions, family.as_parent(session, agent)), key=_age):
                add(child, level + 1)

    for session in sorted(tops, key=_age):
        add(session, 0)
    return found


def _age(session: Session) -> tuple[int, str]:
    return session.created_ms, session.name


def _entry(world: World, session: Session, agent: Agent, found: AgentStatus, level: int) -> TreeAgent:
    return TreeAgent(
        address=f"{agent.name}@{session.name}",
        name=agent.name,
        session=session.name,
        kind=session.kind,
        role=agent.role,
        program=agent.program,
        parent=spawn.starter_of(session),
        branch=agent.branch or session.base_ref,
        path=found.worktree,
        depth=ground.depth_of(world, session),
        state=str(found.status.state),
        detail=found.status.detail,
        since_ms=found.status.since_ms,
        unread=found.unread,
        ahead=found.ahead,
        dirty=found.dirty,
        completion=completion_of(world, session, agent),
        orphan=_orphan(world, session),
        level=level,
        task=agent.task,
    )


def completion_of(world: World, session: Session, agent: Agent) -> Completion | None:
    """Return what came of an agent's task; None while it is open."""
    note = completions.look(world, session, agent)
    if note is None:
        return None
    said = note.last
    return Completion(
        note.id,
        said.status,
        said.text or said.cause,
        said.by,
        said.time_ms,
        said.head,
        said.ahead,
        said.dirty,
        corrected=said.number > 1,
    )


def _orphan(world: World, session: Session) -> str:
    """Return the former parent of a session, when that is gone."""
    parent = session.parent
    return parent.address if parent is not None and not parents.is_there(world, parent) else ""


# --- folders without a record -------------------------------------------------------------------------


def _without_record(world: World, sessions: Sequence[Session]) -> Iterator[TreeAgent]:
    """Yield the folders in the layout of the tree that no record names; a scan creates nothing."""
    trees = {world.layout.root / agent.worktree for one in sessions for agent in one.agents if not agent.shared}
    inside = [tree for tree in _folders(world.layout.subtrees) if tree not in trees]
    for tree in inside:
        yield _unknown(tree.name, tree)
    known = {agent.name for one in sessions if one.is_child for agent in one.agents}
    for place in (world.layout.state / "agents", *(tree / AGENTS for tree in (*sorted(trees), *inside))):
        for folder in _folders(place):
            if folder.name not in known:
                yield _unknown(folder.name, folder)


def _folders(where: Path) -> list[Path]:
    try:
        with os.scandir(where) as found:
            return sorted(where / one.name for one in found if one.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _unknown(name: str, path: Path) -> TreeAgent:
    return TreeAgent("", name, "", NO_RECORD, "", "", "", "", path, 0, "unknown", "no record names this folder")
