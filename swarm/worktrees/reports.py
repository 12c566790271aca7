"""Results of verbs about worktrees: risks, saved work, recoveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.model import Agent


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
    ELSEWHERE = "conversation-elsewhere"
    BUSY = "busy"
    UNREADABLE = "unreadable"
    IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class Risk:
    """One reason not to remove a worktree, with its files."""

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
class Pooled:
    """A worktree without work that waits for the next start.

    Attributes:
        session, agent: whose it was.
        size: of all its files.
        parked_ms: since when, in milliseconds since 1970.
    """

    session: str
    agent: str
    size: int
    parked_ms: int


@dataclass(frozen=True, slots=True)
class RecoverReport:
    """The report of a recovery."""

    rolled_back: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
