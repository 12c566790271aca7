"""Read the events of the agents that the caller started: in order, each event once.

    wait ─► in the hands of this process ─► done: it never comes again

If the process ends before that, the event comes again.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from swarm.agents import endings, event_values, waits
from swarm.bus.errors import ClaimLost, InboxNotFound
from swarm.callers import parents
from swarm.kit.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarm.agents.event_values import AgentEvent
    from swarm.bus.message import Message
    from swarm.bus.protocol import Claim
    from swarm.messages.office.post import Post
    from swarm.project.world import World

#: For how long an event may be in the hands of a process, while that lives.
LEASE = 86_400.0
#: A waiting process checks for agents whose end no supervisor reported, because it died, too.
_LOOK_EVERY = 5.0


def wait(
    world: World,
    post: Post,
    *,
    timeout: float | None,
    kinds: Sequence[str] = (),
    session: str | None = None,
    agents: Sequence[str] = (),
) -> AgentEvent | None:
    """Take the next event of one's own; None when *timeout* seconds were over first.

    It is in the hands of this process until ``done``.

    Args:
        session, agents: only events of this one, and of these (``name`` or ``name@session``); the others stay.

    Raises:
        UsageProblem: there is no such kind.
        WaitCycle: agents would wait for each other.
    """
    types, wanted = _types_of(kinds), _filter(session, agents)
    address = _declared(post)
    take = partial(_take, world, post, address, types=types, wanted=wanted)
    event = take(time.monotonic())
    if event is not None or timeout == 0:
        return event
    deadline = None if timeout is None else time.monotonic() + timeout
    with waits.noted(world, _awaited(world, session, agents), every=False):
        return take(deadline)


def _awaited(world: World, session: str | None, agents: Sequence[str]) -> list[str]:
    """Return the living children of the caller whose events it would take."""
    mine = waits.living_children(world, parents.starter(world))
    chosen, names = None if session is None else session.casefold(), {one.casefold() for one in agents}
    pairs = [(one.casefold(), *one.casefold().partition("@")[::2]) for one in mine]
    fits = [chosen in (None, of) and (not names or bool(names & {whole, name})) for whole, name, of in pairs]
    return [one for one, fit in zip(mine, fits, strict=True) if fit]


def _take(
    world: World,
    post: Post,
    address: str,
    deadline: float | None,
    *,
    types: Sequence[str],
    wanted: Callable[[Message], bool] | None,
) -> AgentEvent | None:
    """Take the next event; None after the deadline."""
    while True:
        endings.report(world)
        left = _LOOK_EVERY if deadline is None else max(0.0, min(_LOOK_EVERY, deadline - time.monotonic()))
        me = post.me().address
        claim = post.bus.receive(address, wait=left, lease=LEASE, who=me, types=tuple(types), wanted=wanted)
        event = _event_of(post, claim)
        if event is not None or (deadline is not None and claim is None and time.monotonic() >= deadline):
            return event


def done(post: Post, event_id: str) -> None:
    """Finish a taken event; it is never delivered again.

    Raises:
        ClaimLost: it is in nobody's hands: done already, or whoever had it took too long.
    """
    post.bus.ack(_in_hand(post, event_id), (event_id,))


def back(post: Post, event_id: str) -> None:
    """Return a taken event to the queue.

    Raises:
        ClaimLost: it is in nobody's hands.
    """
    post.bus.nack(_in_hand(post, event_id), (event_id,))


def _in_hand(post: Post, event_id: str) -> Claim:
    address = event_values.address_of(post.me().address)
    try:
        claims = post.bus.claims(address)
    except InboxNotFound:
        claims = ()
    for claim in claims:
        if any(message.id == event_id for message in claim.messages):
            return claim
    raise ClaimLost(f"event {event_id[:60]!a} is not in hand: it is done, or waits again")


def _types_of(kinds: Sequence[str]) -> tuple[str, ...]:
    unknown = [kind for kind in kinds if kind not in event_values.KINDS]
    if unknown:
        raise UsageProblem(
            f"there is no event kind {unknown[0][:40]!a}", hint="one of " + ", ".join(event_values.KINDS)
        )
    return event_values.types_of(kinds)


def _filter(session: str | None, agents: Sequence[str]) -> Callable[[Message], bool] | None:
    """Return a filter for messages by session and agent; None lets all pass."""
    of_session = None if session is None else session.casefold()
    of_agents = {name.casefold() for name in agents}
    if of_session is None and not of_agents:
        return None

    def wanted(message: Message) -> bool:
        event = event_values.from_message(message)
        if event is None:
            return True  # it is taken, and done with
        if of_session is not None and event.session.casefold() != of_session:
            return False
        return not of_agents or bool(of_agents & {event.agent.casefold(), event.worker.casefold()})

    return wanted


def _declared(post: Post) -> str:
    """Make the caller's own queue for this run of its name, and return its address."""
    me = post.me()
    address = event_values.address_of(me.address)
    post.bus.declare(address, generation=me.member.generation if me.member else "")
    return address


def _event_of(post: Post, claim: Claim | None) -> AgentEvent | None:
    """Return the taken event; acknowledge and skip a message that is not one."""
    if claim is None:
        return None
    event = event_values.from_message(claim.messages[0])
    if event is None:
        post.bus.ack(claim, note="it is no event of swarm's")
    return event
