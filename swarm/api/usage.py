"""Verbs on usage and transcripts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from swarm.api.worktrees import Sets
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.programs.reading.transcript import TranscriptEntry
    from swarm.programs.reading.transcripts import Transcript
    from swarm.usage.values import UsageReport

_LOOK_EVERY = 0.5


class Usage(Sets):
    """Verbs about the records that the agents' programs write."""

    def usage(self, session: str | None = None, *, everything: bool = False) -> UsageReport:
        """Return what agents used up: tokens, what they cost, minutes. Never writes, never waits.

        Args:
            session: only this one; also agents of it that were removed.
            everything: also all other agents that were removed.

        Raises:
            SessionNotFound: there is none of this name, and nothing is known of an earlier one.

        Example:
            >>> swarm.usage("feature-x").total.cost        # doctest: +SKIP
        """
        from swarm.usage import count

        with files.os_errors("cannot count usage"):
            return count.report(self._world, session, everything=everything)

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

    def tell_budget(self, agent: str, session: str) -> int:
        """Tell the user's inbox how an agent stands with its limits; return of how many. Its supervisor calls this."""
        from swarm.agents import budgets

        with files.os_errors(f"cannot report the budget of {agent}"):
            found, one = self._find(agent, session)
            self._refuse_strangers("tell_budget", found, one)
            return budgets.tell(self._world, found, one)

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
                f"there is no record that swarm can read of what {name} says: its program is {source.get('program')}",
                hint=f"while it is there, this shows its pane: swarm peek {name}",
            )
        return found
