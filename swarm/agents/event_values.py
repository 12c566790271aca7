"""Values of agent events.

An event is a message of swarm's own in a box that nobody else can write to or take from by name: ``events.user`` of
the user, ``events.<agent>-<session>`` of an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.message import POSTMASTER, Message, box_of

if TYPE_CHECKING:
    from collections.abc import Iterable

WORKER_COMPLETE = "WorkerComplete"
AGENT_IDLE = "AgentIdle"
AGENT_WAITING = "AgentWaiting"
BUDGET_NEAR = "BudgetNear"
BUDGET_REACHED = "BudgetReached"
#: Kind → the type of the message.
TYPES = {
    WORKER_COMPLETE: "worker-complete",
    AGENT_IDLE: "agent-idle",
    AGENT_WAITING: "agent-waiting",
    BUDGET_NEAR: "budget-near",
    BUDGET_REACHED: "budget-reached",
}
KINDS = tuple(TYPES)
SUCCESS, FAILURE, STOPPED = "success", "failure", "stopped"
IDLE, WAITING, NEAR, REACHED = "idle", "waiting", "near", "reached"
#: Maximum number of characters of an agent's last text in an event.
MOST_TEXT = 5000


class AgentEvent(NamedTuple):
    """Something that happened to an agent.

    Attributes:
        id: names it, also in ``swarm.events.done``.
        kind: ``WorkerComplete``: its program has ended; ``AgentIdle``: its turn is over; ``AgentWaiting``: it waits
            for a person; ``BudgetNear``, ``BudgetReached``: it comes near a limit of what it may use up; it was ended
            because of one.
        worker: the agent, as ``name@session``.
        status: of a ``WorkerComplete`` ``success``, ``failure`` or ``stopped``; of the others ``idle``, ``waiting``,
            ``near``, ``reached``.
        message: one line for people.
        cause: why, such as ``killed by signal 9``; for what it waits; which limit.
        time_ms: when, by the time of day.
        text: of an ``AgentIdle`` the beginning of the last text of the agent, as far as swarm can read it; untrusted.
        approval: of an ``AgentWaiting`` the id for ``approve`` and ``deny``; empty when only its pane can answer.
    """

    id: str
    kind: str
    worker: str
    session: str
    agent: str
    status: str
    message: str
    cause: str = ""
    time_ms: int = 0
    text: str = ""
    approval: str = ""

    @property
    def succeeded(self) -> bool | None:
        """Whether the agent's program ended well; None if it did not end on its own."""
        return {SUCCESS: True, FAILURE: False}.get(self.status)


def address_of(owner: str) -> str:
    """Return the box of the events that are for an agent (``name@session``) or for ``user``."""
    return f"events.{box_of(owner).partition('.')[2]}"


def types_of(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the types of the messages of some kinds.

    Raises:
        KeyError: there is no such kind.
    """
    return tuple(dict.fromkeys(TYPES[kind] for kind in kinds))


def to_message(event: AgentEvent, to: str, generation: str) -> Message:
    """Return the message that is sent to a box."""
    told = {"worker": event.worker, "session": event.session, "agent": event.agent}
    more = {"text": event.text, "approval": event.approval}
    return Message(
        to=to,
        sender=POSTMASTER,
        type=TYPES[event.kind],
        id=event.id,
        body=event.message,
        time_ms=event.time_ms,
        metadata={"kind": event.kind, **told, "status": event.status, "cause": event.cause}
        | {name: value for name, value in more.items() if value},
        generation=generation,
    )


def from_message(message: Message) -> AgentEvent | None:
    """Return the event that was sent; None for what anybody else put there."""
    names = ("kind", "worker", "session", "agent", "status", "cause")
    told = {name: message.metadata.get(name) for name in names}
    told |= {name: message.metadata.get(name, "") for name in ("text", "approval")}
    if message.sender != POSTMASTER or not all(isinstance(value, str) for value in told.values()):
        return None
    texts = {name: str(value) for name, value in told.items()}
    return AgentEvent(id=message.id, message=message.body, time_ms=message.time_ms, **texts)
