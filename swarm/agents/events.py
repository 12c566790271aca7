"""Publish agent events to the queue of the agent or user that started the session.

An event's id follows from what happened, so that told twice it is one.  Of more than ``MOST`` that wait in a queue the
oldest are let go by whoever adds one: it may well be that nobody ever reads them.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from swarm.agents import event_values
from swarm.agents.event_values import AgentEvent
from swarm.bus.addressing import USER
from swarm.callers import parents
from swarm.messages.inboxes import bus_of, post_own

if TYPE_CHECKING:
    from swarm.bus.protocol import PostBus
    from swarm.project.model import Parent, Session
    from swarm.project.world import World

#: So many wait at most in one queue.
MOST = 1000
_LET_GO = f"more than {MOST} events waited"


def put(world: World, parent: Parent | None, *events: AgentEvent) -> None:
    """Put events into a queue: of the agent that is to know, or of the user."""
    to = event_values.address_of(parent.address if parent else USER)
    generation = parent.generation if parent else ""
    with closing(bus_of(world)) as bus:
        post_own(bus, *(event_values.to_message(event, to, generation) for event in events))
        _let_go(bus, to)


def publish(world: World, session: Session, *events: AgentEvent) -> None:
    """Publish events to the queue of a session's starter, or of the nearest ancestor that is there."""
    parent = parents.heir(world, session)
    put(world, parent, *events)
    if parent is not None and not parents.is_there(world, parent):  # cleaned up meanwhile: its queue is nobody's
        put(world, parents.heir(world, session), *events)


def event(kind: str, agent: str, session: str, status: str, cause: str, *, name: str, **more: int | str) -> AgentEvent:
    """Return an event about an agent.

    Args:
        name: what happened, in a word that is the same whoever tells of it.
        more: ``message`` in the place of one made of all that, ``time_ms``, ``text``, ``approval``.
    """
    worker = f"{agent}@{session}"
    message = str(more.get("message") or f"{worker}: {status}" + (f" ({cause})" if cause else ""))
    time_ms = int(more.get("time_ms") or 0)
    made = AgentEvent(f"event.{name}", kind, worker, session, agent, status, message, cause, time_ms)
    return made._replace(text=str(more.get("text") or ""), approval=str(more.get("approval") or ""))


def _let_go(bus: PostBus, address: str) -> None:
    """Drop the oldest events of a queue when too many wait; taken events stay."""
    excess = bus.depth(address).waiting - MOST
    claim = bus.receive(address, limit=excess) if excess > 0 else None
    if claim is not None:
        bus.ack(claim, note=_LET_GO)
