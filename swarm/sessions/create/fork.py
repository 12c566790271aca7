"""Fork an agent: another one of its role and session, from its worktree as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from swarm.agents.launching.launch_request import LaunchRequest, role_for
from swarm.callers import rights
from swarm.merging.conflicts import checkout_of
from swarm.project import names
from swarm.project.errors import NameCollision
from swarm.roles.options import RoleOptions
from swarm.sessions.create.create_request import Fork, Request
from swarm.worktrees.errors import WorktreeNotFound

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role


def name_for(session: Session, agent: Agent, wanted: str | None) -> str:
    """Return the name of the new agent: as wanted, else the old one with the next free number.

    Raises:
        InvalidName, ReservedName, NameCollision
    """
    if wanted is not None:
        name = names.check_name("agent", wanted)
        there = session.agent(name)
        if there is not None:
            raise NameCollision(f"cannot fork {agent.name}: session {session.name} has an agent {there.name} already")
        return name
    stem = re.sub(r"-\d+$", "", agent.name)[: names.MAX_LENGTH - 4]
    numbered = (f"{stem}-{number}" for number in range(2, names.MAX_AGENTS + 3))
    return next(name for name in numbered if session.agent(name) is None)


def request(
    world: World, session: Session, agent: Agent, role: Role | None, name: str, task: str, *, setup: bool
) -> Request:
    """Return the request of a fork. Uncommitted work in the worktree becomes a commit without a ref.

    The worktree, its index and its branch are only read.

    Raises:
        NotForAgents, WorktreeNotFound
    """
    rights.check(world, "fork", [(session, agent)], attempt=f"cannot fork {agent.name}@{session.name}")
    if agent.shared:
        raise WorktreeNotFound(
            f"cannot fork {agent.name}@{session.name}: it has no worktree of its own",
            hint=f"start another agent in its folder: swarm run --role {agent.role or 'ROLE'} --name NAME",
        )
    checkout = checkout_of(world, agent)
    if checkout is None:
        raise WorktreeNotFound(f"cannot fork {agent.name}@{session.name}: its worktree is gone")
    with world.merging.quarantine() as box:
        seen = box.snapshot(checkout)
        if seen.uncommitted:
            box.keep(seen.commit, [seen.head])
    own = ((name, task or agent.task),) if task or agent.task else ()
    beside = f"{agent.name}@{session.name}"  # its pane is where the other one's is
    launch = LaunchRequest(
        agent.program,
        agent.command,
        session.task,
        beside=beside,
        print_mode=agent.print_mode,
        tasks=own,
        overrides=((name, agent.overrides),) if agent.overrides else (),
        env=((name, agent.env),) if agent.env else (),
        sandbox=True if agent.box else None,  # what is in its worktree was written in a box
    )
    role = role_for(agent, role) if role is not None else None
    return Request(
        session.name,
        (names.AgentSpec(name, agent.role),),
        (role,),
        base=seen.head,
        launch=launch if agent.program else None,
        setup=(role.options if role else RoleOptions(),) if setup else None,
        fork=Fork(agent.name, agent.base, seen.commit, seen.uncommitted),
    )
