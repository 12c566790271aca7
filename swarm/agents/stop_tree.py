"""Stop a whole part of the tree: everything below is stopped, leaves first, also after a crash half way.

The operation is written down first.  A spawn takes the same lock and finishes what was interrupted, so no child comes
into a part of the tree that is being stopped.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from swarm.agents import event_values, events, running, view
from swarm.callers import family, parents
from swarm.kit.words import count
from swarm.machine.processes import boot_id
from swarm.project.world import new_operation_id
from swarm.worktrees import transaction

if TYPE_CHECKING:
    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World

KIND = "stop-tree"


def stop(world: World, session: Session, agent: Agent) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Stop an agent and everything below it. The caller holds the lock and has recovered.

    Returns:
        Who was stopped, as (session, agent), and what could not be ended.
    """
    top = family.as_parent(session, agent)
    there = {(one.name, found.name) for one, found in _living(world, top)}
    record: dict[str, Any] = {
        "kind": KIND,
        "operation": new_operation_id(),
        "verb": "stop",
        "session": session.name,
        "started_ns": time.time_ns(),
        "boot": boot_id(),
        "pid": os.getpid(),
        "locks": [],
        "top": list(top),
        "stopped": sorted(map(list, there)),
    }
    world.journal.write(record["operation"], record)
    survivors = _stop(world, record)
    return tuple(sorted(there)), survivors


def continue_stop(world: World, record: dict[str, Any]) -> str:
    """Bring a stop that was cut short to its end."""
    _stop(world, record)
    return "done"


def _stop(world: World, record: dict[str, Any]) -> tuple[str, ...]:
    top = family.parent_from(record["top"])
    survivors: list[str] = []
    for several in _from_the_leaves(world, top):
        for session, agents in several:
            survivors += running.stop(world, session, agents)
    _tell(world, top, record)
    transaction.close(world, record, "done")
    return tuple(survivors)


def _from_the_leaves(world: World, top: Parent) -> list[list[tuple[Session, tuple[Agent, ...]]]]:
    """Return an agent and those below it in groups, the deepest first."""
    groups: dict[int, list[tuple[Session, tuple[Agent, ...]]]] = {}
    for session in family.below(world.sessions.scan()[0], top):
        groups.setdefault(len(parents.line_of(session)), []).append((session, session.agents))
    found = parents.find(world, top)
    ordered = [groups[depth] for depth in sorted(groups, reverse=True)]
    return [*ordered, [(found[0], (found[1],))]] if found is not None else ordered


def _living(world: World, top: Parent) -> list[tuple[Session, Agent]]:
    every = [one for several in _from_the_leaves(world, top) for one in several]
    seen = view.View(world)
    return [
        (session, agent)
        for session, agents in every
        for agent in agents
        if agent.program and seen.status(session, agent).runs
    ]


def _tell(world: World, top: Parent, record: dict[str, Any]) -> None:
    """Tell the parent of the top agent, once, who was stopped."""
    session = world.sessions.get(top.session)
    if session is None or not (session.is_child or session.parent is not None):
        return
    names = [f"{agent}@{name}" for name, agent in record["stopped"]]
    listed = f"{count(len(names), 'agent')} stopped" + (f": {', '.join(names)}" if names else "")
    event = events.event(
        *(event_values.TREE_STOPPED, top.agent, top.session, event_values.STOPPED, listed),
        name=f"tree-stopped.{record['operation']}",
        time_ms=record["started_ns"] // 1_000_000,
    )
    events.publish(world, session, event)
