"""Values of diff, conflicts and merge, and the order in which agents are best merged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from swarm.git.values import Commit


class Forecast(StrEnum):
    """The forecast of one merge."""

    CLEAN = "clean"  # they touch no file in common
    OVERLAP = "overlap"  # they touch the same files, and git can merge them
    CONFLICT = "conflict"
    UNKNOWN = "unknown"  # it could not be found out; never to be taken for clean


class MergeMethod(StrEnum):
    """How an agent's commits get onto the target branch."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


# --- what merging finds -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileConflict:
    """One file that cannot be merged.

    Attributes:
        kinds: in git's words: ``content``, ``add/add``, ``modify/delete``, ``binary``, ``submodule``, …
    """

    path: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge: a tree, with conflict markers where it conflicts."""

    tree: str
    conflicts: tuple[FileConflict, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A worktree as if everything in it had been committed now.

    Attributes:
        head: the commit checked out.
        commit: a throw-away commit of the whole state; *head* itself if nothing is uncommitted.
        uncommitted: paths in which the two differ.
        staged: paths whose index entry differs from *head*.
        untracked: the part of *uncommitted* that git does not know.
    """

    head: str
    commit: str
    uncommitted: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalWork:
    """The local work in a checkout that must follow its branch.

    Attributes:
        in_the_way: paths with local work that would be written over.
        left_out: paths of the changes that a sparse checkout leaves out.
        stale: git must look again at files whose times differ from what it knows.
    """

    in_the_way: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    stale: bool = False


# --- diff --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file.

    Attributes:
        status: ``added``, ``modified``, ``deleted``, ``renamed``, ``copied`` or ``type changed``.
        added, deleted: lines; None for a binary file.
        old_path: where it was, if it was renamed or copied.
    """

    path: str
    status: str
    added: int | None
    deleted: int | None
    old_path: str = ""


@dataclass(frozen=True, slots=True)
class ActingFile:
    """A changed file that acts on the user's machine without a word of the user's.

    Attributes:
        reason: the program that runs it, and when.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class DiffReport:
    """An agent's changes.

    Attributes:
        base: the commit that *files* and *patch* count from.
        head: the commit that they lead to.
        files, patch: the committed changes.
        uncommitted, uncommitted_patch: the uncommitted changes in files that git knows.
        staged: the part of *uncommitted* that is in the index.
        untracked: files that git does not know.
        missing: the worktree is gone; the branch is shown.
        acting: those of all these files, deleted ones excepted, that act on the user's machine by themselves.
    """

    session: str
    agent: str
    branch: str
    path: Path
    base: str
    head: str
    commits: tuple[Commit, ...]
    files: tuple[FileChange, ...]
    patch: str
    uncommitted: tuple[FileChange, ...] = ()
    uncommitted_patch: str = ""
    staged: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    missing: bool = False
    acting: tuple[ActingFile, ...] = ()


# --- conflicts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentForecast:
    """One agent, and the forecast of its merge into its base branch now, uncommitted work included.

    Attributes:
        name: ``agent@session``.
        into: the base branch.
        status: of that merge.
        reason: why it is unknown.
        conflicts: files that conflict with the base branch.
        touched: every file that the agent changed since it left the base branch.
        uncommitted: the part of *touched* that is not committed.
        landed: there is nothing in it that the base branch does not have.
    """

    name: str
    session: str
    agent: str
    path: Path
    branch: str
    into: str
    status: Forecast
    reason: str = ""
    conflicts: tuple[FileConflict, ...] = ()
    touched: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()
    landed: bool = False


@dataclass(frozen=True, slots=True)
class PairForecast:
    """Two agents: the files both touch, and those that conflict."""

    one: str
    other: str
    status: Forecast
    overlap: tuple[str, ...] = ()
    conflicts: tuple[FileConflict, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HotFile:
    """A file that several agents touch."""

    path: str
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderStep:
    """One agent's place in the order of merging.

    Attributes:
        conflicts_with: those before it that it will conflict with; empty means that it goes in cleanly.
    """

    agent: str
    conflicts_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConflictReport:
    """Which agents get into each other's way."""

    agents: tuple[AgentForecast, ...] = ()
    pairs: tuple[PairForecast, ...] = ()
    hot: tuple[HotFile, ...] = ()
    order: tuple[OrderStep, ...] = ()

    @property
    def conflicting(self) -> bool:
        """Whether anything conflicts."""
        found: list[AgentForecast | PairForecast] = [*self.agents, *self.pairs]
        return any(item.status is Forecast.CONFLICT for item in found)

    @property
    def unknown(self) -> tuple[AgentForecast | PairForecast, ...]:
        """The reason why a forecast is unknown."""
        found: list[AgentForecast | PairForecast] = [*self.agents, *self.pairs]
        return tuple(item for item in found if item.status is Forecast.UNKNOWN)


# --- merge -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentConflicts:
    """The conflicts of one agent: its files, and the commits or agents against which they conflict."""

    agent: str
    against: tuple[str, ...]
    files: tuple[FileConflict, ...]


@dataclass(frozen=True, slots=True)
class MergedAgent:
    """One agent that was merged, or would be.

    Attributes:
        commits: how many of its commits went in.
        tip: the branch's tip, which was merged.
        result: the target's tip after it; empty if nothing had to be merged.
        landed: how its work was there before: ``fresh``, ``merged``, ``rebased``, ``squashed``; else empty.
    """

    session: str
    agent: str
    branch: str
    tip: str
    commits: int
    result: str = ""
    landed: str = ""


@dataclass(frozen=True, slots=True)
class MergeReport:
    """The changes of a merge, or with ``dry_run`` the planned ones.

    Attributes:
        into: the target branch.
        old, new: its tip before and after; the same if there was nothing to merge.
        agents: in the order in which they went in.
        files: the changes on the target branch.
        checkout: the working tree that followed; None if the branch is not checked out.
    """

    into: str
    how: MergeMethod
    old: str
    new: str
    agents: tuple[MergedAgent, ...]
    files: tuple[FileChange, ...] = ()
    checkout: Path | None = None
    warnings: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def merged(self) -> tuple[MergedAgent, ...]:
        """Those that had something to merge."""
        return tuple(agent for agent in self.agents if agent.result)


# --- the order -----------------------------------------------------------------------------------------


def suggest_order(
    agents: Sequence[str], conflicts: Mapping[frozenset[str], int], stuck: Collection[str] = ()
) -> tuple[OrderStep, ...]:
    """Suggest in which order to merge, so that many go in cleanly before the first one that does not.

    Greedy: the next one is the one that conflicts with the fewest of those that could still go in
    cleanly; equal ones stay in the order given.  Those that conflict with what has gone in come
    after, fewest conflicts first, and those that cannot go in by themselves last.

    Args:
        agents: who there is.
        conflicts: pair → how many files conflict; a pair that is not in it goes together.
        stuck: who conflicts with the target branch itself.
    """

    def files(one: str, others: Collection[str]) -> tuple[int, int]:
        found = [conflicts.get(frozenset((one, other)), 0) for other in others if other != one]
        return sum(1 for number in found if number), sum(found)

    free = [agent for agent in agents if agent not in stuck]
    order: list[str] = []
    late: list[str] = []
    while free:
        best = min(free, key=lambda one: files(one, free))
        order.append(best)
        late += [one for one in free if one != best and conflicts.get(frozenset((one, best)), 0)]
        free = [one for one in free if one != best and one not in late]
    late.sort(key=lambda one: (*files(one, order), agents.index(one)))
    order += [*late, *(agent for agent in agents if agent in stuck)]
    return tuple(
        OrderStep(one, tuple(before for before in order[:place] if conflicts.get(frozenset((one, before)), 0)))
        for place, one in enumerate(order)
    )
