"""Resolve an address to recipients.

agent            of the sender's own session; for a person, of the only session that has it
agent@session    exactly this one; session/agent means the same
session          all of a session, where no agent has this name
all              everybody of the session but the sender; all@session, of another one
role:NAME        everybody with this role but the sender; role:NAME@session
bridge.NAME      the bridge of this name that served the repository; NAME alone where no agent has it
parent           whoever the sender works for: the agent that started its session, while that is there; else the user
user             the person
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.kit.errors import Ambiguous, SwarmError, UsageProblem, raise_all
from swarm.kit.words import did_you_mean
from swarm.project.errors import AgentNotFound, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

USER = "user"
PARENT = "parent"
EVERYBODY = ("all", "broadcast")
ROLE = "role:"
BRIDGE = "bridge."


class Member(NamedTuple):
    """An agent, or a bridge, that can be written to.

    Attributes:
        session: empty for a bridge.
        generation: which run of its name; see ``Session.generation_of``.
        program: the program that swarm starts for it; empty for a worktree without one.
        parent: address of the agent that started its session; empty when a person did.
        parent_generation: which run of that name it was.
        above: the further ancestors, the nearest first, each with its address and generation.
        kind: of its session: ``team``, ``subtree`` or ``worker``.
    """

    agent: str
    session: str
    role: str = ""
    generation: str = ""
    program: str = ""
    parent: str = ""
    parent_generation: str = ""
    above: tuple[tuple[str, str], ...] = ()
    kind: str = "team"

    @property
    def line(self) -> tuple[tuple[str, str], ...]:
        """Whom it works for, the nearest first, each with address and generation."""
        return ((self.parent, self.parent_generation), *self.above) if self.parent else ()

    @property
    def address(self) -> str:
        """How messages call it."""
        return f"{self.agent}@{self.session}" if self.session else f"{BRIDGE}{self.agent}"


def split(to: str | Iterable[str]) -> tuple[str, ...]:
    """Return the single words of ``a,b`` or ``["a,b", "c"]``, each once.

    Raises:
        UsageProblem: one is empty, or there is none.
    """
    texts = (to,) if isinstance(to, str) else tuple(to)
    words = [word.strip() for text in texts for word in text.split(",")]
    if not words or "" in words:
        raise UsageProblem("no recipient is named", hint="for example: swarm send reviewer 'please look at parser.py'")
    return tuple(dict.fromkeys(words))


def resolve(
    words: Sequence[str],
    members: Sequence[Member],
    sender: Member | None,
    attempt: str = "cannot send",
    *,
    bridges: Sequence[Member] = (),
) -> tuple[Member | None, ...]:
    """Return the recipients that the words name, each once, in their order; None stands for the user.

    Args:
        members: every agent there is.
        sender: None when a person sends.
        attempt: what failed when several of them mean nobody.

    Raises:
        AgentNotFound, SessionNotFound, Ambiguous, UsageProblem: at least one means nobody; all are told at once.
    """
    found: dict[Member | None, None] = {}
    problems: list[SwarmError] = []
    for word in words:
        try:
            found.update(dict.fromkeys(_meant(word, members, sender, bridges)))
        except SwarmError as problem:
            problems.append(problem)
    raise_all(attempt, problems)
    return tuple(found)


def one(word: str, members: Sequence[Member], sender: Member | None, bridges: Sequence[Member] = ()) -> Member | None:
    """Return the single one that a word means; None is the user."""
    meant = _meant(word, members, sender, bridges)
    if len(meant) != 1 or is_group(word):
        raise UsageProblem(f"{word[:60]!a} is not one recipient", hint="name one agent, as AGENT@SESSION")
    return meant[0]


def is_group(word: str) -> bool:
    """Whether a word may mean several."""
    name = _usual(word).partition("@")[0].casefold()
    return name in EVERYBODY or name.startswith(ROLE)


def _meant(
    word: str, members: Sequence[Member], sender: Member | None, bridges: Sequence[Member]
) -> Sequence[Member | None]:
    name, at, session = _usual(word).partition("@")
    lower = name.casefold()
    if lower in (USER, PARENT):
        if at:
            why = "there is one user for all sessions" if lower == USER else "everybody has one parent"
            raise UsageProblem(f"cannot send to {word[:60]!a}: {why}", hint=f"write {lower}")
        return (_parent(members, sender) if lower == PARENT else None,)
    if at and not session:
        raise UsageProblem(f"cannot read {word[:60]!a}: no session is named after the @", hint="write AGENT@SESSION")
    if is_group(word):
        role = lower.removeprefix(ROLE) if lower.startswith(ROLE) else None
        able = [m for m in members if role is None or m.role.casefold() == role] or members
        return _group(word, role, _session(word, session, able if not session else members, sender), sender)
    if not at and (bridge := _bridge(name, members, sender, bridges)) is not None:
        return (bridge,)
    if at:
        return (_named(name, _of_session(session, members), f"session {_known(session, members)} has no agent"),)
    whole = [m for m in members if m.session.casefold() == lower]
    if whole and not _same(name, members):
        return _group(word, None, whole, sender)
    return (_own(name, members, sender) if sender is not None else _only(name, members),)


def _usual(word: str) -> str:
    """Return ``SESSION/AGENT`` as ``AGENT@SESSION``, and any other word as it is."""
    session, slash, agent = word.partition("/")
    return f"{agent}@{session}" if slash and "@" not in word else word


def _bridge(name: str, members: Sequence[Member], sender: Member | None, bridges: Sequence[Member]) -> Member | None:
    """Return the bridge that a word means: an agent of the same name comes first."""
    plain = name.casefold().removeprefix(BRIDGE)
    is_whole = plain != name.casefold()
    if not is_whole and _same(name, [m for m in members if sender is None or m.session == sender.session]):
        return None
    found = _same(plain, bridges)
    if is_whole and not found:
        raise AgentNotFound(
            f"no bridge {plain[:60]!a} ever ran here", hint=f"start it: swarm bridge start {plain[:40]}"
        )
    return found[0] if found else None


def _parent(members: Sequence[Member], sender: Member | None) -> Member | None:
    """Return the agent that started the sender's session, else the nearest one above that is there, or the user."""
    if sender is None:
        return None
    there = {(m.address, m.generation): m for m in members}
    return next((there[one] for one in sender.line if one in there), None)


def out_of_reach(found: Iterable[Member | None], sender: Member) -> tuple[str, ...]:
    """Return the recipients that a spawned agent cannot write to: it reaches its parent, the user and those below it.

    Agents of one session reach each other, and bridges are the user's.
    """
    mine = (sender.address, sender.generation)
    parent = sender.line[:1]
    return tuple(
        one.address
        for one in found
        if one is not None
        and one.session not in ("", sender.session)
        and (one.address, one.generation) not in parent
        and mine not in one.line
    )


def _group(word: str, role: str | None, within: Sequence[Member], sender: Member | None) -> Sequence[Member]:
    found = [m for m in within if m != sender and (role is None or m.role.casefold() == role)]
    if not found:
        others = "" if sender is None else " but the sender"
        raise AgentNotFound(f"{word[:60]!a} means no agent{others}")
    return found


def _session(word: str, named: str, members: Sequence[Member], sender: Member | None) -> Sequence[Member]:
    """Return the session in which a word for several is meant."""
    if named:
        return _of_session(named, members)
    if sender is not None:
        return [m for m in members if m.session == sender.session]
    sessions = list(dict.fromkeys(m.session for m in members))
    if len(sessions) > 1:
        raise Ambiguous(
            f"cannot tell whom {word[:60]!a} means: there are the sessions {', '.join(sessions[:5])}",
            hint=f"for example: {word[:40]}@{sessions[0]}",
        )
    return members


def _of_session(session: str, members: Sequence[Member]) -> Sequence[Member]:
    found = [m for m in members if m.session.casefold() == session.casefold()]
    if not found:
        sessions = dict.fromkeys(m.session for m in members if m.session)
        hint = did_you_mean(session, sessions, SessionNotFound.default_hint)
        raise SessionNotFound(f"there is no session {session[:60]!a} with agents", hint=hint)
    return found


def _known(session: str, members: Sequence[Member]) -> str:
    return _of_session(session, members)[0].session


def _same(name: str, members: Sequence[Member]) -> list[Member]:
    return [m for m in members if m.agent.casefold() == name.casefold()]


def _named(name: str, members: Sequence[Member], otherwise: str) -> Member:
    found = _same(name, members)
    if not found:
        known = list(dict.fromkeys(m.agent for m in members))
        there = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
        raise AgentNotFound(f"{otherwise} {name[:60]!a}", hint=did_you_mean(name, known, f"there are: {there}"))
    return found[0]


def _own(name: str, members: Sequence[Member], sender: Member) -> Member:
    within = [m for m in members if m.session == sender.session]
    elsewhere = _same(name, members)
    if elsewhere and not _same(name, within):
        hint = f"of another session: {', '.join(m.address for m in elsewhere[:5])}"
        raise AgentNotFound(f"your session {sender.session} has no agent {name[:60]!a}", hint=hint)
    return _named(name, within, f"your session {sender.session} has no agent")


def _only(name: str, members: Sequence[Member]) -> Member:
    found = _same(name, members)
    if len(found) > 1:
        which = ", ".join(m.address for m in found[:5])
        raise Ambiguous(f"several agents are called {name[:60]!a}: {which}", hint=f"for example: {found[0].address}")
    if not members:
        raise AgentNotFound(
            f"there is no agent {name[:60]!a}: no session exists",
            hint="start one with `swarm start`, or write to user",
        )
    return found[0] if found else _named(name, members, "there is no agent")
