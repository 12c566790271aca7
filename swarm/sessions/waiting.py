"""Wait until agents reach a state or get a message."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from swarm.agents import waits
from swarm.bus.addressing import USER
from swarm.kit.errors import UsageProblem
from swarm.programs.status import State
from swarm.project.errors import AgentNotFound
from swarm.sessions.errors import NotReached, WaitOver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from swarm.messages.office.post import Post
    from swarm.programs.status import Status
    from swarm.project.world import World

    News = Callable[[], AbstractContextManager[Callable[[float], None]]]

MESSAGE = "message"
_ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED})
#: The awaited state → states that reach it, and states that never will.
_WANTED = {
    "idle": (frozenset({State.IDLE}), _ENDED),
    "done": (frozenset({State.DONE}), frozenset({State.FAILED, State.STOPPED})),
    "stopped": (_ENDED, frozenset[State]()),
}
UNTIL = (*_WANTED, MESSAGE)
_LOOK_EVERY = 0.25
_LONGEST = 60.0


class Reached(NamedTuple):
    """An agent that reached the awaited state; *state* is ``message`` if a message waits."""

    address: str
    state: str
    detail: str = ""


def targets(post: Post, names: Sequence[str], until: str) -> tuple[str, ...]:
    """Return the addresses that names mean, also of several at once; without any, one's own inbox.

    Raises:
        UsageProblem, AgentNotFound, Ambiguous
    """
    if until not in UNTIL:
        raise UsageProblem(f"cannot wait for {until[:40]!a}", hint="one of " + ", ".join(UNTIL))
    found = post.addresses(names) if names else (post.address(),)
    if until != MESSAGE and (not names or USER in found):
        raise UsageProblem(f"cannot wait until {until}: name agents", hint=f"swarm wait AGENT@SESSION --until {until}")
    return found


def wait(
    world: World,
    post: Post,
    addresses: Sequence[str],
    until: str,
    *,
    timeout: float | None,
    any_of: bool,
    news: News | None = None,
) -> tuple[Reached, ...]:
    """Wait; return the agents that reached the state: all, or with *any_of* one.

    Args:
        news: makes a function that waits until some agent may stand differently, or so many seconds are over; without
            it agents are looked at again and again.

    Raises:
        WaitOver, NotReached
        WaitCycle: agents would wait for each other.
    """
    if until != MESSAGE:
        reached, _ = _states(world, addresses, until)
        if len(reached) == len(addresses) or (any_of and reached):
            return reached
    with waits.noted(world, _wakers(post, addresses, until), every=not any_of):
        if until == MESSAGE:
            return _wait(world, post, addresses, until, _pauses(post, addresses), timeout=timeout, any_of=any_of)
        with (news or _looking)() as pause:
            return _wait(world, post, addresses, until, pause, timeout=timeout, any_of=any_of)


@contextmanager
def _looking() -> Iterator[Callable[[float], None]]:
    yield lambda left: time.sleep(min(left, _LOOK_EVERY))


def _wakers(post: Post, addresses: Sequence[str], until: str) -> tuple[str, ...]:
    """Return the agents whose acts can end a wait; who waits for messages may get one from anybody."""
    return () if until == MESSAGE else tuple(one for one in addresses if one != post.address())


def _wait(
    world: World,
    post: Post,
    addresses: Sequence[str],
    until: str,
    pause: Callable[[float], None],
    *,
    timeout: float | None,
    any_of: bool,
) -> tuple[Reached, ...]:
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        reached, lost = _messages(post, addresses) if until == MESSAGE else _states(world, addresses, until)
        if len(reached) == len(addresses) or (any_of and reached):
            return reached
        if lost and (not any_of or len(lost) == len(addresses)):
            raise NotReached(f"cannot wait until {until}: {'; '.join(lost)}")
        left = _LONGEST if deadline is None else deadline - time.monotonic()
        if left <= 0:
            missing = [a for a in addresses if a not in {one.address for one in reached}]
            raise WaitOver(f"{', '.join(missing[:5])}: not {until} within {timeout:g} s")
        pause(left)


# --- states -----------------------------------------------------------------------------------------


def _states(world: World, addresses: Sequence[str], until: str) -> tuple[tuple[Reached, ...], list[str]]:
    wanted, never = _WANTED[until]
    reached: list[Reached] = []
    lost: list[str] = []
    for address, status in _look(world, addresses).items():
        if status is None:
            lost.append(f"{address} is gone")
        elif status.state in wanted:
            reached.append(Reached(address, str(status.state), status.detail))
        elif status.state in never:
            lost.append(f"{address} is {status.state}" + (f" ({status.detail})" if status.detail else ""))
    return tuple(reached), lost


def _look(world: World, addresses: Sequence[str]) -> dict[str, Status | None]:
    from swarm.agents.view import View

    known = {
        f"{agent.name}@{session.name}": (session, agent) for session in world.sessions.all() for agent in session.agents
    }
    pairs = [known[address] for address in addresses if address in known]
    view = View(world, {(session.name, agent.name) for session, agent in pairs})
    found: dict[str, Status | None] = {}
    for address in addresses:
        pair = known.get(address)
        found[address] = None if pair is None else view.status(*pair)
        if pair is not None and not pair[1].program:
            raise AgentNotFound(f"{address} has no program to wait for")
    return found


# --- messages ---------------------------------------------------------------------------------------


def _messages(post: Post, addresses: Sequence[str]) -> tuple[tuple[Reached, ...], list[str]]:
    waiting = post.unread(addresses)
    return tuple(Reached(address, MESSAGE, f"{number} waiting") for address, number in waiting.items() if number), []


def _pauses(post: Post, addresses: Sequence[str]) -> Callable[[float], None]:
    """Return a function that waits for a possible new message, by the bus's own wake-up."""
    from swarm.bus.wake import Wake
    from swarm.bus.wire import PRIORITIES

    return Wake(f"{post.folder(a)}/{name}" for a in addresses for name in (*PRIORITIES, "reader", "drop")).wait
