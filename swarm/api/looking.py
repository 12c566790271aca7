"""Verbs that look at agents: their states, panes and conversations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.project.world import is_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.kit.errors import SwarmError
    from swarm.programs.reading.transcript import TranscriptEntry
    from swarm.programs.reading.transcripts import Transcript
    from swarm.project.model import Session
    from swarm.sessions.reports import Check
    from swarm.sessions.values import AgentStatus, SessionStatus

from swarm.api.sets import Sets

_LOOK_EVERY = 0.5


class Looking(Sets):
    """Verbs about the states and the words of agents."""

    def status(
        self,
        session: str | None = None,
        *,
        look: bool | None = True,
        unread: bool = True,
        ask: bool = True,
        problems: list[SwarmError] | None = None,
        elsewhere: list[Session] | None = None,
    ) -> tuple[SessionStatus, ...]:
        """Return the state of every agent with its evidence. Never writes; waits 200 ms for supervisors that hang.

        What agents committed in their boxes is taken in first, if no other command is at work. A session whose record
        cannot be read is left out.

        Args:
            session: only this one; or an agent, for it alone.
            look: also ask git for uncommitted changes and commits; None: of more than eight agents that do not run only
                those of the newest session. With False nothing is said of worktrees, also not their last commit.
            unread: also count the messages that wait for each agent; without it their number is None.
            ask: also ask every agent's supervisor on its socket, all at once; one that does not answer is ``stale``.
            problems: a list that gets the problems of such records; ``unreadable`` returns them, too.
            elsewhere: sessions that were made with another swarm directory are added here, and not looked at;
                without it they are as all others.
        """
        from swarm.sessions import status as agents

        sessions, wrong = self._world.sessions.scan() if session is None else ((self._target(session).narrowed,), ())
        if problems is not None:
            problems += wrong
        if elsewhere is not None and session is None:
            elsewhere += [one for one in sessions if is_elsewhere(self._world, one)]
            sessions = tuple(one for one in sessions if one not in elsewhere)
        if look is not False:
            self._freshen(sessions)
        with files.os_errors("cannot look at the agents"):
            return agents.status(self._world, sessions, look=look, unread=unread, trees=look is not False, ask=ask)

    def why(
        self, agent: str, session: str | None = None, *, look: bool = True, unread: bool = True, ask: bool = True
    ) -> AgentStatus:
        """Return one agent's state with every piece of evidence; no other agent is looked at.

        Args:
            look, unread, ask: as for ``status``.
        """
        from swarm.sessions import status as agents

        found, one = self._find(agent, session)
        if look:
            self._freshen([found])
        with files.os_errors(f"cannot look at {agent}"):
            alone_in = (found._replace(agents=(one,)),)
            (alone,) = agents.status(self._world, alone_in, look=look, unread=unread, ask=ask)
        return alone.agents[0]

    def peek(self, agent: str, session: str | None = None, *, lines: int = 40) -> list[str]:
        """Return the last lines that an agent's pane shows."""
        from swarm.agents import running

        found, one = self._find(agent, session)
        with files.os_errors(f"cannot look at {agent}"):
            return self._world.terminal.capture(running.pane_of(self._world, found, one), lines)

    def transcript(self, agent: str, session: str | None = None) -> tuple[TranscriptEntry, ...]:
        """Return an agent's conversation so far, oldest first. Never writes, never waits.

        Raises:
            NoRecord: its program writes nothing down that swarm can read.
        """
        with files.os_errors(f"cannot read what {agent} said"):
            return tuple(self._transcript(agent, session).more())

    def watch_transcript(self, agent: str, session: str | None = None) -> Iterator[tuple[TranscriptEntry, ...]]:
        """Yield an agent's conversation so far, then new entries as they are written, without end.

        Raises:
            NoRecord: its program writes nothing down that swarm can read.
        """
        with files.os_errors(f"cannot read what {agent} said"):
            found = self._transcript(agent, session)
            yield tuple(found.more())
            while True:
                time.sleep(_LOOK_EVERY)
                more = found.more()
                if more:
                    yield tuple(more)

    def _transcript(self, agent: str, session: str | None) -> Transcript:
        from swarm.programs.reading.transcripts import open_transcript
        from swarm.project import names
        from swarm.sessions import transcripts
        from swarm.sessions.errors import NoRecord

        names.check_name("agent", agent)
        name, source = transcripts.find_source(self._world, agent, session)
        found = open_transcript(source)
        if found is None:
            raise NoRecord(
                f"swarm cannot read the conversation of {name}: its program is {source.get('program')}",
                hint=f"while it is there, this shows its pane: swarm peek {name}",
            )
        return found

    def doctor(self) -> tuple[Check, ...]:
        """Find problems, each with the command that fixes it. Never writes, never waits."""
        from swarm.sessions import doctor

        return doctor.checks(self._world)
