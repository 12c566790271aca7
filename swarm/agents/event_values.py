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
CHILD_ASKS = "ChildAsks"
COMPLETION_CORRECTED = "CompletionCorrected"
AGENT_ENDED = "AgentEnded"
AGENT_RESTARTED = "AgentRestarted"
TREE_STOPPED = "TreeStopped"
#: Kind → the type of the message.
TYPES = {
    WORKER_COMPLETE: "worker-complete",
    AGENT_IDLE: "agent-idle",
    AGENT_WAITING: "agent-waiting",
    BUDGET_NEAR: "budget-near",
    BUDGET_REACHED: "budget-reached",
    CHILD_ASKS: "child-asks",
    COMPLETION_CORRECTED: "completion-corrected",
    AGENT_ENDED: "agent-ended",
    AGENT_RESTARTED: "agent-restarted",
    TREE_STOPPED: "tree-stopped",
}
KINDS = tuple(TYPES)
SUCCESS, FAILURE, STOPPED = "success", "failure", "stopped"
ASKS = "asks"
IDLE, WAITING, NEAR, REACHED, RESTARTED = "idle", "waiting", "near", "reached", "restarted"
#: Maximum number of characters of an agent's last text in an event, and of what it says of its completion.
MOST_TEXT = 5000
MOST_REPORT = 20_000


class AgentEvent(NamedTuple):
    """Something that happened to an agent.

    Attributes:
        id: names it, also in ``swarm.events.done``.
        kind: ``WorkerComplete``: its program has ended; ``AgentIdle``: its turn is over; ``AgentWaiting``: it waits
            for a person; ``BudgetNear``, ``BudgetReached``: it comes near a limit of what it may use up; it was ended
            because of one. Of a child that was spawned ``WorkerComplete`` comes once for its task, whoever noticed;
            ``CompletionCorrected``: it says otherwise since; ``AgentEnded``: its program ended after that;
            ``AgentRestarted``: it was started again; ``ChildAsks``: it sent a message that wants an answer;
            ``TreeStopped``: it was stopped with all below it.
        worker: the agent, as ``name@session``.
        status: of a ``WorkerComplete`` ``success``, ``failure`` or ``stopped``; of the others ``idle``, ``waiting``,
            ``near``, ``reached``, ``restarted``.
        message: one line for people.
        cause: why, such as ``killed by signal 9``; for what it waits; which limit.
        time_ms: when, by the time of day.
        text: of an ``AgentIdle`` the beginning of the last text of the agent, as far as swarm can read it; of a
            completion what the agent says itself; untrusted.
        approval: of an ``AgentWaiting`` the id for ``approve`` and ``deny``; empty when only its pane can answer.
        by: of a completion who noticed: ``word``, the agent said so; ``exit``, ``budget``, ``stop``, ``lost``.
        head: of a completion the commit that it is at.
        ahead: how many commits it made since its spawn; None when git cannot tell.
        dirty: whether its folder has changes that are not committed; None when git cannot tell.
        about: of a ``CompletionCorrected`` the completion that it corrects; of a ``ChildAsks`` the message to answer.
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
    by: str = ""
    head: str = ""
    ahead: int | None = None
    dirty: bool | None = None
    about: str = ""

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
    more = {name: getattr(event, name) for name in (*_TEXTS, *_PROOF)}
    return Message(
        to=to,
        sender=POSTMASTER,
        type=TYPES[event.kind],
        id=event.id,
        body=event.message,
        time_ms=event.time_ms,
        metadata={"kind": event.kind, **told, "status": event.status, "cause": event.cause}
        | {name: value for name, value in more.items() if value not in ("", None)},
        generation=generation,
    )


#: What only some events have: texts, and what git says.
_TEXTS = ("text", "approval", "by", "head", "about")
_PROOF = ("ahead", "dirty")


def from_message(message: Message) -> AgentEvent | None:
    """Return the event of a message; None if swarm did not send it."""
    names = ("kind", "worker", "session", "agent", "status", "cause")
    told = {name: message.metadata.get(name) for name in names}
    told |= {name: message.metadata.get(name, "") for name in _TEXTS}
    if message.sender != POSTMASTER or not all(isinstance(value, str) for value in told.values()):
        return None
    texts = {name: str(value) for name, value in told.items()}
    ahead, dirty = (message.metadata.get(name) for name in _PROOF)
    return AgentEvent(
        id=message.id,
        message=message.body,
        time_ms=message.time_ms,
        ahead=ahead if isinstance(ahead, int) else None,
        dirty=dirty if isinstance(dirty, bool) else None,
        **texts,
    )
