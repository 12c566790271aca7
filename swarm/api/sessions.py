"""The namespace ``swarm.sessions``: the records of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.sets import Cleaning, check_age
from swarm.kit import files
from swarm.project.world import is_elsewhere

if TYPE_CHECKING:
    from swarm.kit.errors import SwarmError
    from swarm.project.model import Session
    from swarm.sessions.reports import CleanupReport


class Sessions(Cleaning):
    """The sessions of a repository. Call it for their records; it never writes, and never waits."""

    def __call__(self) -> tuple[Session, ...]:
        """Return every session's record. Never writes, never waits."""
        return self._sessions()

    def unreadable(self) -> tuple[SwarmError, ...]:
        """Return the problems of unreadable session records; a status lacks those sessions."""
        with files.os_errors("cannot read the sessions"):
            return self._world.sessions.scan()[1]

    def elsewhere(self) -> tuple[Session, ...]:
        """Return the records of sessions that were made with another swarm directory than the one in use."""
        return tuple(one for one in self._sessions() if is_elsewhere(self._world, one))

    def get(self, name: str) -> Session:
        """Return one session's record.

        Raises:
            SessionNotFound
        """
        return self._session(name)

    def target(self, name: str) -> Session:
        """Return the record of a session; of an agent, ``name`` or ``name@session``, that of its session with it alone.

        Raises:
            SessionNotFound, AgentNotFound, Ambiguous
        """
        return self._target(name).narrowed

    def prune(self, *, older_than_ms: int, dry_run: bool = False) -> CleanupReport:
        """Remove sessions older than this whose agents neither run nor have uncommitted work.

        Those made with another swarm directory are left alone.
        """
        from swarm.callers import rights
        from swarm.sessions.cleanup import cleanup_request

        rights.check(self._world, "sessions.prune", attempt="cannot prune the sessions")
        request = cleanup_request.Request(
            everything=True,
            elsewhere=False,
            older_than_ms=check_age(older_than_ms),
            role=self._role_in,
            verb="session prune",
        )
        return self._clean(request, dry_run=dry_run)
