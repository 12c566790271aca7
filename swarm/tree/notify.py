"""An agent's own word about its task: to its parent, and to nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.agents import completions, event_values
from swarm.callers import parents
from swarm.kit.errors import UsageProblem
from swarm.tree.errors import NoParent
from swarm.tree.values import Notified

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.tree.ground import Ground

#: What an agent can say of its task.
STATUSES = (event_values.SUCCESS, event_values.FAILURE)


def notify(world: World, ground: Ground, status: str, message: str) -> Notified:
    """Keep and tell the completion of the caller's task.

    Raises:
        NoParent: the caller is the root.
        UsageProblem: there is no such status, or the message is empty or too long.
    """
    session, agent = reporter(ground)
    if status not in STATUSES:
        raise UsageProblem(
            f"cannot notify your parent: the status is {str(status)[:40]!a}", hint=f"one of {', '.join(STATUSES)}"
        )
    text = check_text(message, "cannot notify your parent")
    said = completions.say(world, session, agent, status, text)
    first = completions.id_of(session, agent)
    corrects = first if said.number > 1 else ""
    event = f"{first}.{said.number}" if corrects else first
    to = parents.heir(world, session)
    parent = to.address if to is not None else "user"
    return Notified(
        ack=True,
        event=event,
        parent=parent,
        status=status,
        corrects=corrects,
        head=said.head,
        ahead=said.ahead,
        dirty=said.dirty,
    )


def reporter(ground: Ground) -> tuple[Session, Agent]:
    """Return the agent that reports to a parent.

    Raises:
        NoParent: the caller is the root.
    """
    session, agent = ground.session, ground.agent
    if session is None or agent is None:
        raise NoParent("cannot notify your parent: you are the user, the root of the tree, and have none")
    if session.parent is None and not session.is_child:
        raise NoParent(f"cannot notify your parent: {ground.name} is the root of its tree, and has none")
    return session, agent


def check_text(message: str, attempt: str) -> str:
    """Return what an agent says; refuse nothing at all, and a book.

    Raises:
        UsageProblem
    """
    if not message.strip():
        raise UsageProblem(f"{attempt}: the message is empty", hint="say what was done, where it is, and what is left")
    if len(message) > event_values.MOST_REPORT:
        raise UsageProblem(
            f"{attempt}: the message has {len(message)} characters, at most {event_values.MOST_REPORT} are allowed",
            hint="commit a file with the whole, and name it in the message",
        )
    return message
