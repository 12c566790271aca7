"""Results of verbs about sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.git.values import Commit
    from swarm.sessions.values import WorktreeInfo
    from swarm.worktrees.reports import Risk


@dataclass(frozen=True, slots=True)
class WorktreeDetails:
    """One worktree, looked at closely.

    Attributes:
        base: the commit it started from.
        commits: its commits beyond that, newest first, at most 50.
        changes: differences from the last commit, as ``git status --porcelain`` codes and paths.
        risks: the risks that forbid removing it without force.
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


@dataclass(frozen=True, slots=True)
class CreatedAgent:
    """One worktree that was made, or would be; or the folder in which an agent works that gets none.

    Attributes:
        branch: empty: it has none.
        tree: ``own``, or ``shared`` where the folder is not the agent's own.
    """

    name: str
    role: str
    branch: str
    path: Path
    instructions: str = ""
    tree: str = "own"


@dataclass(frozen=True, slots=True)
class CreateReport:
    """The report of a create, or with ``dry_run`` of its plan."""

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
class Removed:
    """The outcome of a cleanup for one agent.

    Attributes:
        salvage: the entry's name, for `restore`; empty when swarm saved nothing.
        whole: its folder is kept as it was, because git could not read it, or it changed while it was removed.
        shared: its folder was not its own, and stays.
        discarded: files without a commit that are gone for good, as the caller asked.
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
    shared: bool = False
    discarded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something a verb left alone, and why."""

    name: str
    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """The report of a cleanup."""

    removed: tuple[Removed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    branches: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def worktrees_removed(self) -> int:
        """How many worktrees are gone."""
        return sum(1 for item in self.removed if not item.shared)

    @property
    def branches_removed(self) -> int:
        """How many branches are gone."""
        return sum(1 for item in self.removed if item.branch_deleted) + len(self.branches)


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """The report of a restore.

    Attributes:
        branches: that came back without a worktree; they had none.
    """

    session: str
    agents: tuple[CreatedAgent, ...]
    warnings: tuple[str, ...] = ()
    dry_run: bool = False
    branches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StopReport:
    """The report of a stop: (session, agent) each, and processes that survived."""

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
class Check:
    """One thing ``doctor`` looked at: ``ok``, ``warn`` or ``bad``, and the command that mends it."""

    name: str
    state: str
    text: str
    hint: str
