"""The base of the post office: the caller's address and the recipients."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus import addressing
from swarm.bus.addressing import USER, Member
from swarm.bus.message import box_of
from swarm.callers.errors import NotForAgents
from swarm.machine.identity import whoami
from swarm.messages import directory
from swarm.messages.settings import open_bus
from swarm.project.errors import SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from swarm.callers.caller import Caller
    from swarm.kit.errors import SwarmError
    from swarm.machine.identity import Identity
    from swarm.project.config.settings import Settings

#: Default lease on taken messages.
LEASE = 600.0


class Sender(NamedTuple):
    """The identity of this process on the bus.

    Attributes:
        address: ``agent@session``, or ``user`` for a person and whatever no agent of this repository started.
        member: the agent; None for the user.
        who: the identity that the machine gives it; None for the user.
        outside: the agent that it belongs to, of another repository or not to be seen: it may write to this one, and no
            more.
    """

    address: str
    member: Member | None = None
    who: Identity | None = None
    outside: str = ""


class PostBase:
    """The messages below one ``.swarm`` folder.

    Args:
        prepare: makes that folder, in a repository that has none yet.
        acting: the agent for which a server acts.
        calling: for whom else it acts; None without ``acting``: this process is the caller.
    """

    def __init__(
        self,
        state: str | Path,
        *,
        environ: Mapping[str, str] | None = None,
        lease: float = LEASE,
        settings: Callable[[], Settings] | None = None,
        prepare: Callable[[], None] | None = None,
        acting: Identity | None = None,
        calling: Caller | None = None,
    ) -> None:
        self._acting = acting
        self._calling = calling
        self._prepare = prepare
        self._state = os.fspath(state)
        self._environ = os.environ if environ is None else environ
        self._settings = settings
        self._lease = lease
        self._me: Sender | None = None
        self._messages = f"{self._state}/{directory.MESSAGES}"
        self.bus = open_bus(self._messages, self.settings)

    @classmethod
    def find(cls, start: str | None = None, *, environ: Mapping[str, str] | None = None) -> Self | None:
        """Open the messages of the repository that this process works for; None where only git could tell.

        Args:
            start: a folder that the caller named; without it an agent's own repository comes first.
        """
        env = os.environ if environ is None else environ
        who = whoami(env) if start is None else None
        state = directory.find_state(os.getcwd() if start is None else start, env)
        if who is not None and os.path.isdir(f"{who.state}/sessions"):
            state = who.state
        return None if state is None else cls(state, environ=env)

    @property
    def state(self) -> str:
        """The ``.swarm`` folder."""
        return self._state

    def settings(self) -> Settings:
        """Return the settings of the repository, read on first use."""
        if self._settings is not None:
            return self._settings()
        from swarm.messages.settings import settings_of

        return settings_of(self._state, self._environ)

    # --- who ------------------------------------------------------------------------------------

    def me(self) -> Sender:
        """Return the identity of this process in this repository."""
        if self._me is None:
            who = self._acting or whoami(self._environ, state=self._state)
            if who is None:
                from swarm.machine import person

                hidden = "an agent whose supervisor cannot be seen" if person.descends_from_agent() else ""
                self._me = Sender(USER, outside=hidden)
            elif not _same_folder(who.state, self._state):
                self._me = Sender(USER, outside=f"{who.address} of another repository")
            else:
                self._me = Sender(who.address, self._member_of(who), who)
        return self._me

    def _member_of(self, who: Identity) -> Member:
        mine = (m for m in directory.members(self._state, (who.session,)) if m.agent == who.agent)
        return next(mine, Member(who.agent, who.session, "", who.generation, "?"))

    def members(self) -> tuple[Member, ...]:
        """Return every agent that can be written to."""
        return directory.members(self._state)  # not kept: others come while this object lives

    def address(self, name: str | None = None) -> str:
        """Return the address of one box: of an agent or a bridge by its name, or one's own.

        Raises:
            AgentNotFound, SessionNotFound, Ambiguous: there is none, or several.
        """
        if name is None:
            return self.me().address
        member = addressing.one(name, self.members(), self.me().member, directory.bridges(self._state))
        return USER if member is None else member.address

    def addresses(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses to wait for, each once; ``all@feature-x`` means several.

        Raises:
            AgentNotFound, SessionNotFound, Ambiguous: there is none, or several.
        """
        bridges = directory.bridges(self._state)
        meant = addressing.resolve(names, self.members(), self.me().member, "cannot wait", bridges=bridges)
        return tuple(USER if member is None else member.address for member in meant)

    def _mine(self, name: str | None, what: str) -> str:
        """Return the address of a box that this process may change."""
        me = self.me()
        address = self.address(name)
        if me.outside:
            raise NotForAgents(f"cannot {what} the inbox of {address}: you are {me.outside}")
        if me.who is not None and address != me.address:
            raise NotForAgents(
                f"cannot {what} the inbox of {address}: you are {me.address}",
                hint="an agent changes only its own inbox; to look: swarm inbox " + address,
            )
        return address

    def declare(self, member: Member | None) -> None:
        """Make sure that an agent, a bridge, or the user, has an inbox."""
        self._make_ready()
        if member is None:
            self.bus.declare(USER)
        else:
            self.bus.declare(member.address, generation=member.generation)

    def _make_ready(self) -> None:
        if os.path.isdir(self._state):
            return
        if self._prepare is None:
            raise SessionNotFound(
                "there are no messages yet: no session was ever made here", hint="start one with `swarm start`"
            )
        self._prepare()

    def folder(self, address: str) -> str:
        """Return the folder of a box."""
        kind, _, box = box_of(address).partition(".")
        return f"{self._messages}/{kind}/{box}"

    def _not_found(self, message_id: str) -> SwarmError:
        from pathlib import Path

        from swarm.messages import undelivered
        from swarm.messages.office.pruned import not_found

        return undelivered.not_found(Path(self._state), not_found(self.bus, message_id), message_id)


def _same_folder(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
