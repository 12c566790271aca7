"""Budgets that are drawn from the parent's: what a child may use up, its parent may not.

    limit of an agent = what it used itself + what its children draw + what is left

An agent that another one starts gets a share of what that one has left, and no more than its role allows.  The file
of its draw is in the run folder of its parent (``machine/run_folder/drawn.py``) before it starts, and the parent's
supervisor counts it as used up.  So all agents of a tree together never get more than its root.  When a child ends, its
file tells what was used up, and the rest is its parent's again.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from swarm.agents.errors import LimitReached
from swarm.callers import parents
from swarm.machine import locks, own
from swarm.machine.run_folder import drawn as files
from swarm.machine.run_folder import runfiles
from swarm.programs import processes
from swarm.usage.spending import meter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World
    from swarm.roles.options import Limits

MINUTES = "minutes"
#: A limit of 0 would be none.
_LEAST = {"tokens": 1, "cost": 0.000001, MINUTES: 0.01}


class Asked(NamedTuple):
    """An agent that is to start.

    Attributes:
        limits: those of its role.
        beside: its run folder, where it works in the folder of its parent; None: it works elsewhere.
        program: of those, what they are counted by: its name and its command.
        conversation: the first one of its program.
    """

    session: str
    agent: str
    limits: Limits
    beside: Path | None = None
    program: tuple[str, tuple[str, ...]] = ("", ())
    conversation: str = ""


def too_little(world: World, parent: Parent | None, asked: Sequence[Asked]) -> Iterator[LimitReached]:
    """Yield a refusal for each agent whose share of what its parent has left would be too small to work with."""
    if parent is None:
        return
    left = _left(world, parent, {files.name_of(one.session, one.agent) for one in asked})
    used = [_used_by(world, one.session, one.agent) for one in asked]
    for kind in files.KINDS:
        rest = left.get(kind, 0.0) - sum(one[kind] for one in used)
        for one in asked if kind in left else ():
            share = world.settings.tree.budget_share / 100
            limit = getattr(one.limits, kind)
            least = getattr(world.settings.tree, f"min_{kind}")
            more = share * max(0.0, rest)
            if more < (min(least, limit) if limit else least):
                yield _refusal(world, parent, one, kind, max(0.0, rest))
                break
            rest -= min(more, limit) if limit else more


def _refusal(world: World, parent: Parent, one: Asked, kind: str, rest: float) -> LimitReached:
    least = getattr(world.settings.tree, f"min_{kind}")
    return LimitReached(
        f"{one.agent}@{one.session} would get too little: {parent.address} has {words(kind, rest)} of its budget left,"
        f" of which one child gets at most {world.settings.tree.budget_share} %, and tree.min_{kind} is"
        f" {words(kind, least)}",
        hint="what an ended child has not used comes back; do the work yourself, or end a child: swarm tree",
        limit=f"min_{kind}",
        value=least,
        left=rest,
    )


def words(kind: str, value: float) -> str:
    """Return an amount in words."""
    return {"tokens": f"{value:,.0f} tokens", "cost": f"${value:,.2f}"}.get(kind, f"{value:g} minutes")


def told(world: World, session: Session, agent: Agent) -> str:
    """Return the budget that an agent was started with, in words; empty when its parent has none."""
    parent = parents.living(world, session)
    run, name = _folder(world, session, agent), files.name_of(session.name, agent.name)
    draws = runfiles.read(str(_run(world, parent)), name) if parent is not None else None
    held = runfiles.read(str(run), runfiles.LIMITS) or {}
    kinds = [kind for kind in files.KINDS if draws is not None and files.amount(draws, kind)]
    return ", ".join(words(kind, files.amount(held, kind)) for kind in kinds)


# --- draw, and give back --------------------------------------------------------------------------------


def draw(world: World, parent: Parent, one: Asked, operation: str) -> Limits:
    """Draw the budget of an agent that is about to start; return its limits. The caller holds the lock.

    Args:
        operation: of this start.
    """
    run, name = _run(world, parent), files.name_of(one.session, one.agent)
    if not run.is_dir():
        return one.limits
    before = runfiles.read(str(run), name) or {}
    left, used = _left(world, parent, {name}), _used_by(world, one.session, one.agent)
    if before.get("settled") is True:  # records of its program may be gone since
        used |= {kind: max(used[kind], files.amount(before, kind)) for kind in files.KINDS}
    together = _counts_together(world, parent, one)
    share = world.settings.tree.budget_share / 100
    given: dict[str, Any] = {}
    for kind, rest in left.items():
        more = rest if together or kind == MINUTES else share * max(0.0, rest - used[kind])
        given[kind] = _given(kind, used[kind] + more, getattr(one.limits, kind))
    with _hold(run):
        record: dict[str, object] = {
            "operation": operation,
            "folder": str(one.beside or ""),
            "conversations": [one.conversation],
            "before": {key: value for key, value in before.items() if key != "before"},
        }
        amounts = {kind: given[kind] for kind in files.KINDS if kind in given and not together}
        runfiles.write(str(run), name, {**record, **amounts})
    return replace(one.limits, **given)


def _counts_together(world: World, parent: Parent, one: Asked) -> bool:
    """Whether the records of an agent and its parent cannot be told apart: then both have one and the same budget."""
    there = parents.find(world, parent)
    if one.beside is None or there is None or meter.tells_apart(*one.program):
        return False
    return one.program == (there[1].program, there[1].command)


def _given(kind: str, most: float, limit: float) -> float:
    """Return the whole budget of a child; what it used up at earlier starts counts."""
    given = min(limit, most) if limit else most
    return max(int(given) if kind == "tokens" else round(given, 6), _LEAST[kind])


def take_back(world: World, parent: Parent, session: str, agent: str, operation: str) -> None:
    """Undo a draw of a start that did not come about; what was drawn before it is drawn again."""
    run, name = _run(world, parent), files.name_of(session, agent)
    found = runfiles.read(str(run), name)
    if found is None or found.get("operation") != operation:
        return
    before = found.get("before")
    if isinstance(before, dict) and before:
        runfiles.write(str(run), name, before)
    else:
        runfiles.remove(str(run), name)


def settle(world: World, session: Session, agent: Agent, *, over: bool = False) -> None:
    """Give back to its parent what an agent that has ended did not use up, and so on upwards.

    Args:
        over: no start of it is under way, also none that has not come to its program yet.
    """
    run = _folder(world, session, agent)
    facts = processes.facts(run)
    ended = (runfiles.read(str(run), runfiles.PROCESS) or {}).get("operation")
    if facts.alive or facts.supervised:
        return

    def is_its(draws: Mapping[str, object] | None) -> bool:
        return draws is not None and bool(draws.get("operation")) and (over or draws["operation"] == ended)

    used = None
    for above in parents.line_of(session):
        place, name = _run(world, above), files.name_of(session.name, agent.name)
        if not is_its(runfiles.read(str(place), name)):
            continue
        used = used or _used(world, session, agent)
        with _hold(place):
            found = runfiles.read(str(place), name)
            if found is None or not is_its(found):
                continue  # it was started again meanwhile
            known = found.get("conversations")
            talks = {*(known if isinstance(known, list) else ()), *files.current(str(run))}
            amounts = {kind: used[kind] for kind in files.KINDS if kind in found}
            talked = {"conversations": sorted(map(str, talks)), "settled": True}
            runfiles.write(str(place), name, {**found, **amounts, **talked})
        there = parents.find(world, above)
        if there is not None:
            settle(world, *there)


def unpaid(world: World, session: Session, new: Parent | None) -> Iterator[LimitReached]:
    """Yield what an adopted session would draw on the budget of its new parent, and that does not have."""
    left = _left(world, new, ()) if new is not None else {}
    for kind in files.KINDS if new is not None else ():
        wanted = sum(_draws(world, session, agent).get(kind, 0.0) for agent in session.agents)
        if kind in left and wanted > left[kind]:
            yield LimitReached(
                f"{session.name} draws {words(kind, wanted)}, and {new.address} has {words(kind, left[kind])} left"
                if new is not None
                else "",
                hint="end a child of the new parent first, or raise its limits: swarm tree",
            )


def move(world: World, session: Session, old: Parent | None, new: Parent | None) -> None:
    """Let the agents of an adopted session draw on their new parent from now on. The caller holds the lock.

    What they used up so far stays with the old one as well: it was spent in that tree.
    """
    for agent in session.agents:
        name, draws = files.name_of(session.name, agent.name), _draws(world, session, agent)
        if new is not None and _run(world, new).is_dir():
            operation = (runfiles.read(str(_folder(world, session, agent)), runfiles.LIMITS) or {}).get("operation")
            runfiles.write(str(_run(world, new)), name, {"operation": operation, **draws})
        found = runfiles.read(str(_run(world, old)), name) if old is not None else None
        if old is not None and found is not None:
            used = _used(world, session, agent)
            amounts = {kind: min(used[kind], files.amount(found, kind)) for kind in files.KINDS if kind in found}
            runfiles.write(str(_run(world, old)), name, {**found, **amounts, "operation": ""})


def _draws(world: World, session: Session, agent: Agent) -> dict[str, float]:
    """Return what an agent draws on whoever pays: its limits while it runs, else what it used up."""
    run = _folder(world, session, agent)
    facts, used = processes.facts(run), _used(world, session, agent)
    held = runfiles.read(str(run), runfiles.LIMITS) or {}
    runs = facts.alive or facts.supervised
    return {kind: (files.amount(held, kind) if runs else 0.0) or used[kind] for kind in files.KINDS}


# --- sums -----------------------------------------------------------------------------------------------


def _left(world: World, parent: Parent, but: Iterable[str]) -> Mapping[str, float]:
    """Return what an agent has left of each of its limits; what has none is not in it.

    Args:
        but: files of children that do not count.
    """
    there = parents.find(world, parent)
    run = _run(world, parent)
    limits = runfiles.read(str(run), runfiles.LIMITS) or {}
    kinds = [kind for kind in (*files.KINDS, MINUTES) if files.amount(limits, kind)]
    if there is None or not kinds:
        return {}
    used, given = _own(world, *there), files.total(str(run), frozenset(but))
    return {kind: max(0.0, files.amount(limits, kind) - used[kind] - given.get(kind, 0.0)) for kind in kinds}


def _own(world: World, session: Session, agent: Agent) -> dict[str, float]:
    from swarm.usage import price_table
    from swarm.usage.count import usage_of

    found = usage_of(world, session, agent, price_table.load(world.settings))
    cost = sum(one.cost or 0.0 for one in found.models)
    return {"tokens": float(found.total.tokens), "cost": cost, MINUTES: found.minutes}


def _used(world: World, session: Session, agent: Agent) -> dict[str, float]:
    """Return what an agent and all below it have used up, or may."""
    below = files.total(str(_folder(world, session, agent)))
    return {kind: value + below.get(kind, 0.0) for kind, value in _own(world, session, agent).items()}


def _used_by(world: World, session: str, agent: str) -> dict[str, float]:
    """Return what an agent used up at earlier starts, with all below it."""
    there = world.sessions.get(session)
    one = there.agent(agent) if there is not None else None
    if there is None or one is None:
        return dict.fromkeys((*files.KINDS, MINUTES), 0.0)
    return _used(world, there, one)


def _folder(world: World, session: Session, agent: Agent) -> Path:
    return world.layout.run_folder(session.name, agent.name)


def _run(world: World, parent: Parent) -> Path:
    return world.layout.run_folder(parent.session, parent.agent)


@contextmanager
def _hold(run: Path) -> Iterator[None]:
    """Let only one process at a time change what is drawn on an agent's budget."""
    fd = own.open(str(run / files.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        locks.lock(fd)
        yield
    finally:
        os.close(fd)
