"""What an agent in a box starts has at least its box: it can give nobody more than it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.callers import parents
from swarm.permissions.boxed import TREE, in_box
from swarm.permissions.rules import parse_rule
from swarm.project.config.hosts import ALL, MODEL, NONE, PACKAGED
from swarm.sandbox.bounds import limits

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.model import Boxed, Parent
    from swarm.project.world import World

#: From the narrowest.
_PRESETS = (NONE, MODEL, PACKAGED, ALL)


def of_caller(world: World) -> Boxed | None:
    """Return the box of the agent that calls; None: it has none, or no agent calls."""
    found = parents.starter(world)
    record = parents.find(world, found) if found is not None else None
    return record[1].box if record is not None and record[1].is_boxed else None


def rules_of_caller(world: World) -> tuple[str, ...]:
    """Return the deny rules that hold for the agent that calls, its own and inherited ones."""
    found = parents.starter(world)
    return tuple(one[0] for one in limits.rules_of(_run_folder(world, found))) if found is not None else ()


def has_fixed_files(world: World) -> bool:
    """Whether the box of the agent that calls holds rules about files of its worktree."""
    found = parents.starter(world)
    rules = limits.rules_of(_run_folder(world, found)) if found is not None else ()
    return any(held and in_box(parse_rule(rule)).base == TREE for rule, held, _ in rules)


def _run_folder(world: World, who: Parent) -> Path:
    return world.layout.run_folder(who.session, who.agent)


def within(own: Boxed, above: Boxed) -> Boxed:
    """Return a box that shows and allows what both do."""
    network = min(own.network, above.network, key=_PRESETS.index)
    return own._replace(
        read_only=_both(own.read_only, (*above.read_only, *above.read_write)),
        read_write=_both(own.read_write, above.read_write),
        network=network,
        hosts=_hosts(own, above),
        private=_both(own.private, above.private),
        processes=_least(own.processes, above.processes),
        memory=_least(own.memory, above.memory),
        tmp=_least(own.tmp, above.tmp),
        disk=_least(own.disk, above.disk),
        messages=_least(own.messages, above.messages),
    )


def _hosts(own: Boxed, above: Boxed) -> tuple[str, ...]:
    if own.network == ALL:
        return above.hosts
    return own.hosts if above.network == ALL else _both(own.hosts, above.hosts)


def _both(own: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in own if one in above)


def _least(*limits: int) -> int:
    """Return the smaller one of two limits; 0 is none."""
    return min((one for one in limits if one), default=0)
