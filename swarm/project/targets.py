"""Read the words by which users name a session or one of its agents.

``AGENT@SESSION`` and ``SESSION/AGENT`` mean an agent of that session. A bare word means a session or an agent: verbs
about sessions look for a session first, verbs about agents for an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.kit.errors import Ambiguous, UsageProblem
from swarm.kit.words import did_you_mean
from swarm.project import names
from swarm.project.errors import AgentNotFound, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.project.model import Agent, Session
    from swarm.project.world import World

#: How many names a hint holds.
_MOST_NAMED = 10


class Target(NamedTuple):
    """A session, or one agent of it.

    Attributes:
        agent: None means all agents of the session.
    """

    session: Session
    agent: Agent | None = None

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The agents that are meant."""
        return self.session.agents if self.agent is None else (self.agent,)

    @property
    def narrowed(self) -> Session:
        """The record of the session with these agents alone."""
        return self.session._replace(agents=self.agents)


def split_agent(text: str) -> tuple[str, str | None]:
    """Return (agent, session) of ``AGENT@SESSION`` or ``SESSION/AGENT``; a bare word has no session.

    Raises:
        UsageProblem: nothing follows the @.
    """
    if not isinstance(text, str):
        raise UsageProblem(f"cannot read {text!r}: it is no name", hint="write AGENT, AGENT@SESSION or SESSION")
    agent, at, session = text.partition("@")
    if not at and "/" in text:
        session, at, agent = text.partition("/")
    if at and not session:
        raise UsageProblem(f"cannot read {text!r}: no session is named after the @", hint=f"write {agent}@SESSION")
    return agent, session if at else None


def find(world: World, text: str) -> Target:
    """Return the session or the agent that a word names; a session comes before an agent of the same name.

    Raises:
        SessionNotFound, AgentNotFound: there is none.
        Ambiguous: agents of several sessions have this name.
    """
    name, where = split_agent(text)
    session = world.sessions.get(names.check_session(name if where is None else where))
    if where is not None:
        if session is None:
            raise no_session(world, where)
        return Target(session, agent_of(session, names.check_name("agent", name)))
    if session is not None:
        return Target(session)
    found = [Target(one, agent) for one in world.sessions.all() if (agent := one.agent(name)) is not None]
    if not found:
        raise no_session(world, name)
    return only(name, found)


def agent_of(session: Session, name: str) -> Agent:
    """Return an agent of a session.

    Raises:
        AgentNotFound: it has none of this name.
    """
    found = session.agent(name)
    if found is None:
        raise AgentNotFound(f"session {session.name} has no agent {name}", hint=_near(name, session.agents))
    return found


def only(name: str, found: Sequence[Target]) -> Target:
    """Return the only agent that was found under a name.

    Raises:
        Ambiguous: there are several.
    """
    if len(found) > 1:
        ways = [f"{one.agent.name}@{one.session.name}" for one in found if one.agent is not None]
        raise Ambiguous(f"{name} could be {', '.join(ways)}", hint=f"write one of them, such as {ways[0]}")
    return found[0]


def no_session(world: World, name: str) -> SessionNotFound:
    """Return the error for an unknown session; for an agent's name it names the agent's session."""
    sessions = world.sessions.scan()[0]
    meant = [f"{agent.name}@{one.name}" for one in sessions if (agent := one.agent(name)) is not None]
    known = [one.name for one in sessions]
    listed = SessionNotFound.default_hint
    hint = f"{name} is no session but an agent: {', '.join(meant[:5])}" if meant else did_you_mean(name, known, listed)
    return SessionNotFound(f"there is no session {name}", hint=hint)


def no_agent(world: World, name: str) -> AgentNotFound:
    """Return the error for an unknown agent; for a session's name it lists the session's agents."""
    sessions = world.sessions.scan()[0]
    for one in sessions:
        if one.name.casefold() == name.casefold():
            agents = ", ".join(f"{agent.name}@{one.name}" for agent in one.agents[:_MOST_NAMED])
            return AgentNotFound(f"there is no agent {name}", hint=f"{one.name} is a session; in it are: {agents}")
    return AgentNotFound(f"there is no agent {name}", hint=_near(name, [a for one in sessions for a in one.agents]))


def _near(name: str, agents: Sequence[Agent]) -> str | None:
    """Return a hint that names the agent most likely meant, or lists the agents; None without any."""
    known = list(dict.fromkeys(agent.name for agent in agents))
    more = f" and {len(known) - _MOST_NAMED} more; `swarm list` shows them" if len(known) > _MOST_NAMED else ""
    return did_you_mean(name, known, f"there are: {', '.join(known[:_MOST_NAMED])}{more}") if known else None
