"""What verbs answer with: frozen reports about agents, sessions and salvage."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.programs.status import State, Status
    from swarm.project.model import Agent, Session


@dataclass(frozen=True, slots=True)
class WorktreeInfo:
    """A worktree of swarm's, as listings show it.

    Attributes:
        path: absolute.
        branch: what is checked out; empty when detached.
        role, agent, session: from the record; guessed from the folder's name only without one.
        head: commit id.
        is_locked: locked in git against removal.
        created_at: milliseconds since 1970; 0 when unknown.
        dirty: whether files differ from the last commit; None when it was not asked or cannot be told.
        ahead: commits on it that its base does not have; None as above.
        missing: the record is there, the worktree is not.
        kept: where instructions that somebody had edited are kept, when they were just replaced.
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


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, for people to read."""

    id: str
    author: str
    time: int
    subject: str


@dataclass(frozen=True, slots=True)
class WorktreeDetails:
    """One worktree, looked at closely.

    Attributes:
        base: the commit it started from.
        commits: what it has beyond that, newest first, at most 50.
        changes: what differs from the last commit, as ``git status --porcelain`` codes and paths.
        risks: what would stand against removing it without force.
        landed: how its commits are in the base branch: ``fresh``, ``merged``, ``rebased``, ``squashed``,
            or empty when they are not.
        placed: files that swarm put in.
        parent: the agent (``name@session``) that started its session; empty: a person did.
    """

    info: WorktreeInfo
    base: str
    commits: tuple[Commit, ...]
    changes: tuple[str, ...]
    risks: tuple[Risk, ...]
    landed: str
    placed: tuple[str, ...]
    parent: str = ""


class RiskKind(StrEnum):
    """Why a worktree is not removed without ``--force``."""

    MODIFIED = "modified"
    STAGED = "staged"
    UNTRACKED = "untracked"
    PRECIOUS = "precious-ignored"
    HIDDEN = "hidden-edit"
    OPERATION = "operation-in-progress"
    NESTED = "nested-repository"
    SUBMODULE = "submodule"
    LOCKED = "locked"
    PROCESS = "live-process"
    BUSY = "busy"
    UNREADABLE = "unreadable"
    IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class Risk:
    """One reason not to remove a worktree, with what it is about."""

    kind: RiskKind
    text: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentRisks:
    """Why one agent's worktree was not removed."""

    session: str
    agent: str
    path: Path
    risks: tuple[Risk, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """What happened to one agent in a cleanup.

    Attributes:
        salvage: what restore takes; empty when nothing was saved.
        whole: its folder is kept as it was, because git could not read it, or it changed while it was removed.
        discarded: what is gone for good because it was asked to be: files that were not in a commit.
    """

    session: str
    agent: str
    role: str
    path: Path
    branch: str
    branch_deleted: bool
    head: str
    salvage: str = ""
    landed: str = ""
    commits: int = 0
    saved_files: int = 0
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    whole: bool = False
    discarded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something a verb left alone, and why."""

    name: str
    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What a cleanup did."""

    removed: tuple[Removed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    branches: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def worktrees_removed(self) -> int:
        """How many worktrees are gone."""
        return len(self.removed)

    @property
    def branches_removed(self) -> int:
        """How many branches are gone."""
        return sum(1 for item in self.removed if item.branch_deleted) + len(self.branches)


@dataclass(frozen=True, slots=True)
class CreatedAgent:
    """One worktree that was made, or would be."""

    name: str
    role: str
    branch: str
    path: Path
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class CreateReport:
    """What a create did, or with ``dry_run`` would do."""

    session: str
    base_ref: str
    base: str
    agents: tuple[CreatedAgent, ...]
    warnings: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    dry_run: bool = False

    def paths(self) -> dict[str, Path]:
        """Agent name → worktree, in order."""
        return {agent.name: agent.path for agent in self.agents}


@dataclass(frozen=True, slots=True)
class RecoverReport:
    """What a recovery found and did."""

    rolled_back: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """One agent, as ``status`` and ``list`` show it."""

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


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """One session, and the state that most needs a look."""

    session: Session
    state: State
    agents: tuple[AgentStatus, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing ``doctor`` looked at: ``ok``, ``warn`` or ``bad``, and the command that mends it."""

    name: str
    state: str
    text: str
    hint: str


@dataclass(frozen=True, slots=True)
class StopReport:
    """What a stop did: (session, agent) each, and what could not be ended."""

    stopped: tuple[tuple[str, str], ...]
    survivors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResumeReport:
    """Which agents were started again: (session, agent) each; the others ran.

    Attributes:
        done: did their task in print mode and ended; a restart does it anew.
        survivors: processes that would not end when their agent was restarted.
    """

    started: tuple[tuple[str, str], ...]
    running: tuple[tuple[str, str], ...] = ()
    skipped: tuple[Skipped, ...] = ()
    done: tuple[tuple[str, str], ...] = ()
    survivors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SalvageEntry:
    """One saved worktree.

    Attributes:
        id: sorts by time; with session and agent it names the entry.
        operation: the cleanup that made it.
        generation: the operation that had made the session.
        record: the agent as it was.
        head: the commit that was checked out.
        branch_tip: where the agent's branch was.
        manifest: everything a restore needs to know beyond the refs.
    """

    session: str
    agent: str
    id: str
    operation: str
    generation: str
    created_ms: int
    record: Agent
    head: str
    branch_tip: str
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How the user names it."""
        return f"{self.session}/{self.agent}@{self.id}"


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What came back.

    Attributes:
        branches: that came back without a worktree; they had none.
    """

    session: str
    agents: tuple[CreatedAgent, ...]
    warnings: tuple[str, ...] = ()
    dry_run: bool = False
    branches: tuple[str, ...] = ()
