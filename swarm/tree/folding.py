"""Fold subtrees into the branches they were cut from: which, in what order, and what stands against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.agents import completions, event_values
from swarm.agents.view import View
from swarm.callers import family, parents
from swarm.kit.errors import UsageProblem
from swarm.project import layout as places
from swarm.project.model import SUBTREE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.merging.values import MergeReport
    from swarm.project.model import Agent, Session
    from swarm.project.world import World


def from_the_leaves(world: World, session: Session, agent: Agent) -> tuple[Session, ...]:
    """Return the sessions below an agent, the deepest first, and last its own if a spawn made it."""
    below = family.below(world.sessions.scan()[0], family.as_parent(session, agent))
    found = sorted(below, key=lambda one: len(parents.line_of(one)), reverse=True)
    return (*found, session) if session.is_child else tuple(found)


def nodes(world: World, session: Session, agent: Agent) -> tuple[Session, ...]:
    """Return the subtrees to be merged, the deepest first.

    Raises:
        UsageProblem: there are none.
    """
    found = tuple(one for one in from_the_leaves(world, session, agent) if one.kind == SUBTREE)
    if not found:
        raise UsageProblem(
            f"cannot merge the tree of {agent.name}@{session.name}: no subtree is below it",
            hint="workers have no branch: commit what they did; a team is merged by: swarm merge " + session.name,
        )
    return found


def why_open(world: World, session: Session) -> str:
    """Return why the work of a subtree is not to be merged yet; empty when its lead reported success."""
    for agent in session.agents:
        note = completions.look(world, session, agent)
        if note is None:
            return f"the task of {agent.name}@{session.name} is open"
        if note.last.status != event_values.SUCCESS:
            return f"{agent.name}@{session.name} reported {note.last.status}"
    return ""


def why_not_clean(world: World, session: Session, report: MergeReport) -> str:
    """Return why a merged subtree is not to be removed yet; empty when all its work is proved to have landed."""
    tips = world.git.tips(*(places.HEADS + one.branch for one in report.agents))
    moved = [one for one in report.agents if tips.get(places.HEADS + one.branch) != one.tip]
    if moved:
        return f"{moved[0].agent}@{moved[0].session} has gone on since the merge"
    view = View(world)
    for child in _children(world, session):
        for agent in child.agents:
            if view.status(child, agent).runs and completions.look(world, child, agent) is None:
                return f"{agent.name}@{child.name} below it still works"
    return ""


def _children(world: World, session: Session) -> Sequence[Session]:
    return family.below_session(world.sessions.scan()[0], session)[1:]
