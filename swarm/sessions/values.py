"""How sessions, agents and worktrees stand, as listings show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.programs.status import State, Status
    from swarm.project.model import Agent, Session


class AgentStatus(NamedTuple):
    """One agent, as ``status`` and ``list`` show it.

    Attributes:
        exit_code: of its program, once that has ended; None: it runs, or a signal ended it.
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
