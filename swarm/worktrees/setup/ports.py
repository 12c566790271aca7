"""Network ports for agents: free, and unique in the repository.

An agent keeps its ports for as long as its record is there, also while it is stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.kit import commandline as rules
from swarm.kit.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.project.model import Agent
    from swarm.project.world import World


def choose(
    world: World, agent: str, session: str, wanted: Sequence[str], taken: set[int]
) -> tuple[tuple[str, int], ...]:
    """Choose free ports for an agent, and add them to *taken*.

    Raises:
        EnvironmentProblem: there is none.
    """
    found = []
    candidates = rules.ports(f"{world.layout.root}\0{session}\0{agent}")
    for name in dict.fromkeys(wanted):
        port = next((one for one in candidates if one not in taken and world.preparing.port_is_free(one)), None)
        if port is None:
            raise EnvironmentProblem(f"cannot give {agent} a port: all of swarm's ports are taken")
        taken.add(port)
        found.append((name, port))
    return tuple(found)


def again(world: World, agents: Sequence[Agent], session: str) -> Iterator[Agent]:
    """Give restored agents other ports where theirs are taken by now."""
    there = taken(world) if any(agent.ports for agent in agents) else set()
    for agent in agents:
        kept = tuple(pair for pair in agent.ports if pair[1] not in there)
        there.update(port for _, port in kept)
        lost = [pair[0] for pair in agent.ports if pair not in kept]
        yield agent._replace(ports=(*kept, *choose(world, agent.name, session, lost, there)))


def taken(world: World) -> set[int]:
    """Return the ports that agents of this repository have."""
    return {port for session in world.sessions.all() for agent in session.agents for _, port in agent.ports}
