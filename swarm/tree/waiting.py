"""Wait for an event of one's children without taking it: a reader has a cursor, and asking again gives it again.

    wait() ─► event 7, cursor 7 ─► wait(after=7): 7 is acknowledged, and kept as the reader's cursor ─► event 8, …

An event stays in the queue when the client that asked for it gives up.  A message of a child that wants an answer is an
event, too, so that a parent that waits can answer.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from swarm.agents import endings, event_values, events, waits
from swarm.bus.wake import Wake
from swarm.bus.wire import PRIORITIES
from swarm.callers import parents
from swarm.kit.errors import UsageProblem
from swarm.machine.run_folder import runfiles
from swarm.messages.inboxes import bus_of, post_own
from swarm.project.model import Parent
from swarm.tree.values import Awaited

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarm.agents.event_values import AgentEvent
    from swarm.bus.protocol import Stored
    from swarm.messages.office.post import Post
    from swarm.project.model import Session
    from swarm.project.world import World

#: How long a wait lasts that says nothing, and the longest: no wait is without an end.
SHORT, LONGEST = 45.0, 86_400.0
#: How often a wait that lasts tells that it goes on, and looks for ends that no supervisor reported.
TELL_EVERY, LOOK_EVERY = 20.0, 5.0
_CURSOR = "cursor.json"
#: So many messages of an inbox are looked at for questions.
_MOST_ASKED = 200


class Reader(NamedTuple):
    """Whoever waits.

    Attributes:
        me: the agent; None: the user.
        queue: the address of the events.
    """

    me: Parent | None
    address: str
    queue: str


def wait(
    world: World,
    post: Post,
    *,
    after: str | None,
    timeout: float | None,
    kinds: Sequence[str],
    progress: Callable[[float], None] | None,
) -> Awaited:
    """Return the first event after a cursor; it stays in the queue.

    Args:
        after: the cursor of the last event that was dealt with; None: the one that was kept.
        progress: called with the seconds gone, now and then while the wait lasts.

    Raises:
        UsageProblem: the cursor or a kind is none, or the time is too long.
        WaitCycle: agents would wait for each other.
    """
    seconds = _seconds(timeout)
    wanted = _kinds(kinds)
    reader = _reader(post)
    _report(world)
    begun = _begin(post, reader, after)
    found = _look(world, post, reader, begun, wanted)
    if found.event is not None or seconds <= 0:
        return found
    with waits.noted(world, waits.living_children(world, reader.me), every=False):
        return _wait(world, post, reader, begun, wanted, seconds, progress)


def _wait(
    world: World,
    post: Post,
    reader: Reader,
    begun: int,
    wanted: frozenset[str],
    seconds: float,
    progress: Callable[[float], None] | None,
) -> Awaited:
    start = time.monotonic()
    told = start
    boxes = [post.folder(reader.queue), post.folder(reader.address)]
    wake = Wake(f"{box}/{lane}" for box in boxes for lane in (*PRIORITIES, "drop"))
    try:
        while True:
            found = _look(world, post, reader, begun, wanted)
            now = time.monotonic()
            left = start + seconds - now
            if found.event is not None or left <= 0:
                return found
            _report(world)
            if progress is not None and now - told >= TELL_EVERY:
                progress(now - start)
                told = now
            wake.wait(min(left, LOOK_EVERY))
    finally:
        wake.close()


#: When this process last looked for ends, by the folder: a server waits in many short looks.
_reported: dict[str, float] = {}


def _report(world: World) -> None:
    """Report ends that no supervisor reported, because it died, too; not more often than it helps."""
    now, state = time.monotonic(), str(world.layout.state)
    if now - _reported.get(state, -LOOK_EVERY) >= LOOK_EVERY:
        _reported[state] = now
        endings.report(world)


def _look(world: World, post: Post, reader: Reader, begun: int, wanted: frozenset[str]) -> Awaited:
    """Return what is there now."""
    _ask(world, post, reader)
    new = [one for one in _behind(post, reader, begun) if _is_wanted(one, wanted)]
    if not new:
        return Awaited(None, _cursor(begun), 0)
    event = event_values.from_message(new[0].message)
    return Awaited(event, _cursor(new[0].number), len(new) - 1)


def _behind(post: Post, reader: Reader, begun: int) -> list[Stored]:
    """Return the messages behind a place of the queue, oldest first."""
    last = post.bus.history(reader.queue, 1)
    missing = last[-1].number - begun if last else 0
    if missing <= 0:
        return []
    return [one for one in post.bus.history(reader.queue, missing) if one.number > begun]


def _is_wanted(one: Stored, wanted: frozenset[str]) -> bool:
    event = event_values.from_message(one.message)
    return event is not None and (not wanted or event.kind in wanted)


# --- who reads, and from where -------------------------------------------------------------------------


def _reader(post: Post) -> Reader:
    """Return who waits, with a queue and an inbox that are there."""
    me = post.me()
    queue = event_values.address_of(me.address)
    member = me.member
    generation = member.generation if member else ""
    post.declare(member)
    post.bus.declare(queue, generation=generation)
    agent = Parent(member.agent, member.session, generation) if member else None
    return Reader(agent, me.address, queue)


def _begin(post: Post, reader: Reader, after: str | None) -> int:
    """Return behind which event the wait begins; a cursor that is named is kept."""
    folder = post.folder(reader.queue)
    note = runfiles.read(folder, _CURSOR) or {}
    number = note.get("number")
    kept = number if isinstance(number, int) else 0
    if after is None:
        return kept
    begun = _number(after)
    last = post.bus.history(reader.queue, 1)
    if begun > (last[-1].number if last else 0):
        raise UsageProblem(
            f"cannot wait after {after!r}: your queue has no such event", hint="leave it out to go on where you were"
        )
    if begun > kept:
        runfiles.write(folder, _CURSOR, {"number": begun})
    return begun


def _cursor(number: int) -> str:
    return f"e{number}"


def _number(cursor: str) -> int:
    digits = cursor.removeprefix("e")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 15):
        raise UsageProblem(
            f"cannot wait after {cursor[:40]!a}: this is no cursor",
            hint="hand back the cursor of the last answer, such as e7; leave it out to go on where you were",
        )
    return int(digits)


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return SHORT
    if not 0 <= timeout <= LONGEST:
        raise UsageProblem(f"cannot wait {timeout:g} seconds", hint=f"at most {LONGEST:g}; 0 only looks")
    return timeout


def _kinds(kinds: Sequence[str]) -> frozenset[str]:
    unknown = [kind for kind in kinds if kind not in event_values.KINDS]
    if unknown:
        what = f"there is no event kind {unknown[0][:40]!a}"
        raise UsageProblem(what, hint="one of " + ", ".join(event_values.KINDS))
    return frozenset(kinds)


# --- children, and what they ask ------------------------------------------------------------------------


def _ask(world: World, post: Post, reader: Reader) -> None:
    """Put an event into the reader's own queue for each message of a child that wants an answer, once."""
    asking = [one for one in post.bus.peek(reader.address, _MOST_ASKED) if one.message.requires_response]
    if not asking:
        return
    sessions = {one.name: one for one in world.sessions.scan()[0]}
    made = []
    for one in asking:
        agent, _, name = one.message.sender.partition("@")
        session = sessions.get(name)
        if session is not None and _is_child(session, reader.me) and session.agent(agent) is not None:
            made.append(_question(one, agent, session))
    known = {one.message.id for one in post.bus.history(reader.queue, events.MOST)} if made else set()
    fresh = [event for event in made if event.id not in known]
    if fresh:
        generation = reader.me.generation if reader.me is not None else ""
        bus = bus_of(world)
        try:
            post_own(bus, *(event_values.to_message(event, reader.queue, generation) for event in fresh))
        finally:
            bus.close()


def _is_child(session: Session, me: Parent | None) -> bool:
    return me in parents.line_of(session) if me is not None else session.is_child


def _question(one: Stored, agent: str, session: Session) -> AgentEvent:
    message = one.message
    words = f"{message.sender} asks: {message.subject or message.body.strip().partition(os.linesep)[0]}"
    asked = events.event(
        *(event_values.CHILD_ASKS, agent, session.name, event_values.ASKS, ""),
        name=f"asks.{message.id[:60]}",
        message=words[:300],
        text=message.body[: event_values.MOST_TEXT],
        time_ms=message.time_ms,
    )
    return asked._replace(about=message.id)
