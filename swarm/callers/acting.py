"""A server that acts for an agent: it sees the agent by its process, or knows it by a token that it gave out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.callers import parents
from swarm.callers.errors import NotForAgents
from swarm.machine import processes, records
from swarm.machine.identity import Identity, whoami
from swarm.machine.run_folder import runfiles

if TYPE_CHECKING:
    from swarm.project.model import Parent
    from swarm.project.world import World


def by_process(world: World, pid: int) -> World:
    """Return the world as the agent of a process calls in it.

    Raises:
        NotForAgents: no agent of this repository can be seen above the process.
    """
    who = whoami({}, pid=pid, state=os.fspath(world.layout.state))
    if who is None or parents.here(world, who) is None:
        raise NotForAgents(
            f"cannot act for process {pid}: it belongs to no agent of this repository",
            hint="call from the program of an agent, or type the command in a terminal",
        )
    return _as(world, who)


def by_record(world: World, agent: Parent) -> World:
    """Return the world as an agent calls in it that is known by its record: a token of that very run showed it.

    Raises:
        NotForAgents: this run of its name is over, or its program never began.
    """
    run = os.fspath(world.layout.run_folder(agent.session, agent.agent))
    process = records.read(f"{run}/{runfiles.PROCESS}")
    if process is None or not parents.is_there(world, agent):
        raise NotForAgents(
            f"cannot act for {agent.address}: this run of it is over, or has not begun",
            hint="look at it: swarm why " + agent.address,
        )
    return _as(world, Identity(run, process))


def _as(world: World, who: Identity) -> World:
    """Return the world of an agent: its environment is that of its program, as far as the machine shows it.

    That of a program in a box is none of the machine's: by it the agent would name what runs outside.
    """
    me = parents.here(world, who)
    found = parents.find(world, me) if me is not None else None
    if found is not None and found[1].is_boxed:
        return world._replace(acting=who)
    data = processes.environment(who.program_pid) if who.program_pid else b""
    pairs = (one.partition(b"=") for one in data.split(b"\0") if b"=" in one)
    environ = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return world._replace(acting=who, environ=environ or world.environ)
