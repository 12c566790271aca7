"""Children whose parent's program has ended: they go on, are left in peace, or are stopped, as the setting says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.programs import processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.project.model import Agent, Session
    from swarm.project.world import World

KEEP, PAUSE, STOP = "keep", "pause", "stop"


def former_parent(world: World, session: Session) -> str:
    """Return the parent of a spawned session if its program has ended, or it is gone; else nothing."""
    parent = session.parent
    if parent is None or not session.is_child:
        return ""
    from swarm.callers import parents  # most sessions have none

    if not parents.is_there(world, parent):
        return parent.address
    facts = processes.facts(world.layout.run_folder(parent.session, parent.agent))
    return parent.address if facts.pid and not facts.alive and not facts.supervised else ""


def is_paused(world: World, session: Session) -> bool:
    """Whether an agent is not told of messages, because its parent has ended."""
    return world.settings.tree.on_parent_end == PAUSE and bool(former_parent(world, session))


def stop_all(world: World) -> None:
    """Stop the children of ended parents, if the setting says so. The caller holds the lock and has recovered."""
    if world.settings.tree.on_parent_end != STOP:
        return
    from swarm.agents import stop_tree

    for session, agent in tuple(_living_orphans(world)):
        stop_tree.stop(world, session, agent)


def are_any(world: World) -> bool:
    """Whether there is anything for ``stop_all``."""
    return world.settings.tree.on_parent_end == STOP and any(True for _ in _living_orphans(world))


def _living_orphans(world: World) -> Iterator[tuple[Session, Agent]]:
    for session in world.sessions.scan()[0]:
        if former_parent(world, session):
            for agent in session.agents:
                if processes.facts(world.layout.run_folder(session.name, agent.name)).alive:
                    yield session, agent
