"""Identify the caller: a person, an agent, a program with a grant, or unknown.

This is the one place that decides it. Each is shown by the machine, none by default:

    below an agent's supervisor ───────────────────────────────► that agent
    its supervisor is gone, or is hidden ──────────────────────► nobody
    holds the token of a grant that counts ────────────────────► a program of the user, by the grant's name
    a terminal of its own, init's namespaces, all parents seen ► a person
    anything else ─────────────────────────────────────────────► nobody: may send as the user, and consents to nothing
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.approvals.grants import VARIABLE, Grants
from swarm.callers.errors import IdentityRefused, NotForAgents
from swarm.machine import person
from swarm.machine.identity import whoami

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.machine.identity import Identity
    from swarm.project.world import World

PERSON, AGENT, PROGRAM, NOBODY = "person", "agent", "program", "nobody"


class Caller(NamedTuple):
    """The identity of a calling process.

    Attributes:
        kind: ``person``, ``agent``, ``program`` or ``nobody``.
        who: the agent, of whatever repository.
        grant: name of the grant by which a program acts.
        doubt: why it is nobody.
    """

    kind: str
    who: Identity | None = None
    grant: str = ""
    doubt: str = ""

    @property
    def consents(self) -> bool:
        """Whether the caller speaks for the user: it may approve, discard, drop, type."""
        return self.kind in (PERSON, PROGRAM)

    @property
    def name(self) -> str:
        """How it is written down."""
        if self.who is not None:
            return self.who.address
        return f"{user_name()} by grant {self.grant}" if self.grant else user_name()


def caller_of(state: str, environ: Mapping[str, str], acting: Identity | None = None) -> Caller:
    """Return the kind of caller that this process is for the repository with this ``.swarm`` folder.

    Args:
        acting: the agent for which it acts, as it has seen that one.
    """
    who = acting or whoami(environ, state=state)
    if who is not None:
        return Caller(AGENT, who)
    doubt = person.doubt()
    token = environ.get(VARIABLE, "")
    if token and not person.descends_from_agent():
        name = Grants(Path(state)).name_of(token)
        if name:
            return Caller(PROGRAM, grant=name)
        doubt = doubt and f"{doubt}, and {VARIABLE} holds no valid grant"
    return Caller(NOBODY, doubt=doubt) if doubt else Caller(PERSON)


def caller(world: World) -> Caller:
    """Return the kind of caller that this process is, or the one for which it acts."""
    return world.calling or caller_of(os.fspath(world.layout.state), world.environ, world.acting)


def of_processes(state: str, pids: Sequence[int] | None, grant: str = "", *, by_person: bool = False) -> Caller:
    """Return who asks a server, if no agent is to be seen there.

    Args:
        pids: the processes at the other end of the connection; None where the machine cannot tell.
        grant: the token of a grant that it shows; empty: it shows none.
        by_person: a person let it act as a person does: a browser that was signed in.

    Raises:
        NotForAgents: an agent, or something that an agent started, is at the other end.
        IdentityRefused: nothing can be seen there; or there is no such grant.
    """
    if pids == []:
        raise IdentityRefused("cannot act: the request came from a process that cannot be seen", hint="")
    if any(person.is_below_agent(pid) for pid in pids or ()):
        raise NotForAgents("cannot act: the request came from a program that an agent or a task started", hint="")
    if grant:
        name = Grants(Path(state)).name_of(grant)
        if not name:
            raise IdentityRefused("cannot act: the request shows a grant that does not count", hint="")
        return Caller(PROGRAM, grant=name)
    doubts = ["this machine does not show what process it is"] if pids is None else [person.doubt(pid) for pid in pids]
    doubt = next(filter(None, doubts), "")
    return Caller(PERSON) if by_person or not doubt else Caller(NOBODY, doubt=doubt)


def actor(world: World) -> str:
    """Return the caller's name for the records."""
    return caller(world).name


def user_name() -> str:
    """Return the account that this process runs under; containers have some without a name."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"
