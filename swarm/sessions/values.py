"""How sessions, agents and worktrees stand, as listings show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from swarm.agents.outside import Outside
    from swarm.programs.status import State, Status
    from swarm.project.model import Agent, Session


class AgentStatus(NamedTuple):
    """One agent, as ``status`` and ``list`` show it.

    Attributes:
        exit_code: of its program, once that has ended; None: it runs, or a signal ended it.
        blocked: while it waits for permission: the ``tool``, the ``request`` that answers it, ``since_ms``.
        socket: the path on which its supervisor answers how it stands; empty without one.
        stale: why nobody answers there; empty while somebody does, and where nobody was asked.
        held: why its last commits are in its box alone; empty: they are taken in, or it has no box.
        outside: what changed outside of its worktree during its turns, by it or by somebody else; the newest first.
        limits: of its box: how much may be used up in it, as `BoxReport.limits`; None without a box.
    """

    agent: Agent
    status: Status
    pane: str
    pid: int
    worktree: Path
    head: str = ""
    ahead: int | None = None
    dirty: bool | None = None
    missing: bool = False
    unread: int | None = 0
    session: str = ""
    exit_code: int | None = None
    blocked: Mapping[str, Any] | None = None
    socket: str = ""
    stale: str = ""
    held: str = ""
    limits: Mapping[str, int | str] | None = None
    outside: tuple[Outside, ...] = ()

    @property
    def box(self) -> str:
        """The name of its sandbox box, such as ``bubblewrap`` or ``noop (…)``; empty: none was wanted."""
        return self.agent.box.by if self.agent.box else ""


class SessionStatus(NamedTuple):
    """One session, and the state that most needs a look."""

    session: Session
    state: State
    agents: tuple[AgentStatus, ...]


class WorktreeInfo(NamedTuple):
    """A worktree of swarm's, as listings show it.

    Attributes:
        path: absolute.
        branch: the branch that is checked out; empty when detached.
        role, agent, session: from the record; guessed from the folder's name only without one.
        head: commit id.
        is_locked: locked in git against removal.
        created_at: milliseconds since 1970; 0 when unknown.
        dirty: whether files differ from the last commit; None when it was not asked or cannot be told.
        ahead: commits on it that its base does not have; None as above.
        missing: the record is there, the worktree is not.
        kept: the kept copy of edited instructions that were just replaced.
    """

    path: Path
    branch: str
    role: str
    head: str
    is_locked: bool
    created_at: int
    agent: str = ""
    session: str = ""
    lock_reason: str = ""
    dirty: bool | None = None
    ahead: int | None = None
    missing: bool = False
    kept: Path | None = None
