"""Who waits for whom: the notes of waiting agents, and the cycles in them.

A wait is a note in the run folder of the agent that waits, for as long as the waiting process lives.  An agent whose
every wait can only be ended by agents that wait themselves, and so on, would wait for ever: whoever closes such a cycle
is told at once.  Waits of people close none: nobody waits for a person here.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from swarm.agents.errors import WaitCycle
from swarm.agents.view import View
from swarm.callers import family, parents
from swarm.kit import files
from swarm.machine import processes, records
from swarm.machine.run_folder import runfiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.project.model import Parent
    from swarm.project.world import World

_PREFIX, _SUFFIX = "wait-", ".json"


class Wait(NamedTuple):
    """One wait of an agent.

    Attributes:
        targets: the addresses of those whose acts can end it.
        every: it needs all of them; else one is enough.
    """

    targets: tuple[str, ...]
    every: bool


def living_children(world: World, me: Parent | None) -> list[str]:
    """Return the children of an agent from which an event may come: those that live; none of a person."""
    if me is None:
        return []
    mine = list(family.children(world.sessions.scan()[0], me))
    if not mine:
        return []
    view = View(world, {(one.name, agent.name) for one in mine for agent in one.agents})
    return [
        f"{agent.name}@{one.name}"
        for one in mine
        for agent in one.agents
        if agent.program and view.status(one, agent).runs
    ]


@contextmanager
def noted(world: World, targets: Iterable[str], *, every: bool) -> Iterator[None]:
    """Note a wait of the caller while it lasts; a person's is not noted.

    Raises:
        WaitCycle: with it agents would wait for each other.
    """
    me = parents.starter(world)
    wanted = tuple(targets)
    if me is None or not wanted:
        yield
        return
    run = world.layout.run_folder(me.session, me.agent)
    name = f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}"
    start, boot = processes.start_of(os.getpid()) or 0, processes.boot_id()
    note = {"run": me.generation, "pid": os.getpid(), "start": start, "boot": boot}
    runfiles.write(str(run), name, {**note, "targets": list(wanted), "every": every})
    try:
        refuse_cycle(look(world), me.address)
        yield
    finally:
        runfiles.remove(str(run), name)


def look(world: World) -> dict[str, list[Wait]]:
    """Return the waits of all agents whose waiting processes live, by address."""
    found: dict[str, list[Wait]] = {}
    with suppress(OSError):
        for path in world.layout.sessions.glob(f"*/run/*/{_PREFIX}*{_SUFFIX}"):
            wait = _read(path)
            if wait is not None:
                found.setdefault(f"{path.parent.name}@{path.parents[2].name}", []).append(wait)
    return found


def _read(path: Path) -> Wait | None:
    """Return a wait; that of a dead process is forgotten."""
    note = records.read(str(path))
    if note is None:
        return None
    pid, start, targets = note.get("pid"), note.get("start"), note.get("targets")
    alive = isinstance(pid, int) and processes.start_of(pid) == start and note.get("boot") == processes.boot_id()
    if not alive or not isinstance(targets, list):
        with suppress(OSError):
            files.unlink_if_there(path)
        return None
    return Wait(tuple(str(one) for one in targets), note.get("every") is True)


def refuse_cycle(waits: Mapping[str, Sequence[Wait]], me: str) -> None:
    """Refuse a wait with which the agents of a cycle wait for each other.

    Raises:
        WaitCycle
    """
    stuck = _stuck(waits)
    if me in stuck:
        cycle = _cycle(waits, stuck, me)
        raise WaitCycle(f"cannot wait: {' waits for '.join(cycle)}, and nobody would end it", cycle=cycle)


def _stuck(waits: Mapping[str, Sequence[Wait]]) -> set[str]:
    """Return the agents that only agents could wake that are stuck themselves."""
    stuck = {one for one, several in waits.items() if several}
    while True:
        free = {one for one in stuck if any(_can_end(wait, stuck) for wait in waits[one])}
        if not free:
            return stuck
        stuck -= free


def _can_end(wait: Wait, stuck: set[str]) -> bool:
    if not wait.targets:
        return True
    able = [one not in stuck for one in wait.targets]
    return all(able) if wait.every else any(able)


def _cycle(waits: Mapping[str, Sequence[Wait]], stuck: set[str], me: str) -> list[str]:
    """Return a way from an agent through stuck ones back to one that is on it already."""
    way = [me]
    while True:
        following = next(one for wait in waits[way[-1]] for one in wait.targets if one in stuck)
        if following in way:
            return [*way[way.index(following) :], following]
        way.append(following)
