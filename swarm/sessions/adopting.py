"""Give a child another parent: its record, and those of all below it, say so afterwards, or none does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from swarm.agents.budgets import drawn
from swarm.callers import family, parents
from swarm.kit.errors import UsageProblem, raise_all
from swarm.machine.processes import boot_id
from swarm.project import codec
from swarm.project.world import new_operation_id
from swarm.worktrees import adopt as copies
from swarm.worktrees import transaction

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World

KIND = "adopt"


def adopt(world: World, child: Session, to: tuple[Session, Agent] | None, depth: int) -> None:
    """Give a child another parent; *to* None is the user. The caller holds the lock and has recovered.

    Args:
        depth: of the new parent.

    Raises:
        UsageProblem: the new parent is the child, or below it.
        LimitReached: the new parent has not enough of its budget left.
    """
    parent = family.as_parent(*to) if to is not None else None
    if to is not None and (to[0].name == child.name or to[0] in family.below_session(_all(world), child)):
        raise UsageProblem(f"cannot give {child.name} to {to[1].name}@{to[0].name}: that one is below it")
    line = (parent, *parents.line_of(to[0])) if parent is not None and to is not None else ()
    record: dict[str, Any] = {
        "kind": KIND,
        "operation": new_operation_id(),
        "verb": "adopt",
        "session": child.name,
        "started_ns": time.time_ns(),
        "boot": boot_id(),
        "pid": os.getpid(),
        "locks": [],
        "changed": dict(_changed(world, child, line, depth + 1)),
        "paid": [list(child.parent or ()), list(parent or ())],
    }
    raise_all(f"cannot give {child.name} to {parent.address if parent else 'user'}", drawn.unpaid(world, child, parent))
    world.journal.write(record["operation"], record)
    continue_adoption(world, record)


def _all(world: World) -> tuple[Session, ...]:
    return world.sessions.all()


def _changed(world: World, child: Session, line: tuple[Any, ...], depth: int) -> list[tuple[str, dict[str, Any]]]:
    """Return what the records of a child and of those below it will say of their place."""
    old = len(parents.line_of(child))
    found = []
    for one in family.below_session(_all(world), child):
        own = parents.line_of(one)
        now = (*own[: len(own) - old], *line)  # what is between it and the child stays
        place = {"line": [codec.parent_to_dict(each) for each in now], "depth": depth + len(own) - old}
        found.append((one.name, place))
    return found


def continue_adoption(world: World, record: dict[str, Any]) -> str:
    """Write every record; done again after a crash it changes nothing more."""
    old, new = (family.parent_from(one) if one else None for one in record.get("paid", ((), ())))
    child = world.sessions.get(record["session"])
    if child is not None and old != new:
        drawn.move(world, child, old, new)
    for name, place in record["changed"].items():
        session = world.sessions.get(name)
        if session is None:
            continue
        line = codec.ancestors_from(place["line"])
        now = session._replace(parent=line[0] if line else None, ancestors=line[1:], depth=place["depth"])
        if now != session:
            world.sessions.write(now)
            copies.leave_copies(world, now)
    transaction.close(world, record, "done")
    return "done"
