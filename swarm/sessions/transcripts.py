"""Find the conversation of an agent, also of a removed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit.errors import Ambiguous, SwarmError
from swarm.sessions import listing
from swarm.sessions.errors import NoRecord
from swarm.usage import log
from swarm.usage.count import source_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.project.world import World
    from swarm.usage.log import Kept


def find_source(world: World, agent: str, session: str | None) -> tuple[str, Mapping[str, Any]]:
    """Return ``AGENT@SESSION`` and where its conversation is written down, also of an agent that was removed.

    Raises:
        SwarmError: there is no such agent, or several.
        NoRecord: its program writes nothing down that swarm can read.
    """
    try:
        found, one = listing.find_agent(world, agent, session)
        name, source, program = f"{one.name}@{found.name}", source_of(world, found, one), one.program
    except Ambiguous:
        raise
    except SwarmError:
        kept = _find_kept(world, agent, session)
        if kept is None:
            raise
        name, source, program = f"{kept.usage.agent}@{kept.usage.session}", kept.source, kept.usage.program
    if not source:
        raise NoRecord(
            f"swarm cannot read the conversation of {name}: "
            + (f"its program is {program}" if program else "it has no program")
        )
    return name, source


def _find_kept(world: World, agent: str, session: str | None) -> Kept | None:
    """Return the removed agent of this name that was there last."""
    names = (agent.casefold(), session.casefold() if session is not None else None)
    hits = [
        one
        for one in log.read(world.layout.usage)
        if one.whose[1] == names[0] and names[1] in (None, one.whose[0]) and one.source
    ]
    return hits[-1] if hits else None
