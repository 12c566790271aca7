"""Values of working trees and their saved parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swarm.git.content.walk import Walk
    from swarm.git.rest import Rest


@dataclass(frozen=True, slots=True)
class TreeState:
    """Everything in a worktree that is not simply the last commit.

    Paths are relative to the worktree.

    Attributes:
        head: the commit checked out.
        head_tree: the tree of that commit; empty: not asked.
        found: what was found in the tree, one by one; None: nobody has looked.
        rest: what was seen without git, of a worktree that is of a plain kind.
        branch: the branch checked out; empty when detached.
        modified: tracked files whose bytes, mode or kind differ from the index, deleted ones included.
        deleted: the part of *modified* that is not there any more.
        rewritten: files that are the same for git but may differ in their bytes: written anew, other line
            ends, or what a filter makes no difference of.
        staged: paths whose index entry differs from the commit.
        unmerged: paths with conflict entries in the index.
        hidden: changed files that git was told not to look at (assume-unchanged, skip-worktree).
        untracked: files git does not know and does not ignore.
        ignored: files git ignores; folders that are ignored as a whole end in a slash.
        nested: folders that are repositories of their own.
        submodules: the part of *nested* that the index knows as submodules.
        submodule_risks: submodule folder → why it holds work that exists nowhere else.
        submodule_ignored: files in submodules that git ignores there.
        operations: git operations in progress, such as ``merge`` or ``rebase``.
        locks: lock files of a git that is at work in this worktree, or was killed.
        special: files that cannot be saved: pipes, sockets, devices.
        unreadable: files and folders that may not be read.
        fingerprint: changes whenever anything in the tree does.
        notes: changes whenever git's notes about it do.
    """

    head: str
    branch: str
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    unmerged: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    submodule_risks: tuple[tuple[str, str], ...] = ()
    submodule_ignored: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    fingerprint: str = ""
    notes: str = ""
    head_tree: str = ""
    found: Walk | None = field(default=None, compare=False, repr=False)
    rest: Rest | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Capture:
    """The parts of a worktree to save.

    Attributes:
        state: as it was looked at.
        branch: the agent's branch, whose log is saved too.
        branch_tip: where that branch is; empty when it is gone.
        keep: untracked and ignored files to save as git objects.
        aside: files and folders that will be moved out of the tree instead (too big, or repositories).
        message: for the commits that hold the saved trees.
        manifest: facts to store along with them.
        damaged: git cannot read its own notes about it; what can be read of them counts.
    """

    state: TreeState
    branch: str
    branch_tip: str
    keep: tuple[str, ...]
    aside: tuple[str, ...]
    message: str
    manifest: dict[str, Any] = field(default_factory=dict)
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """The objects that hold a saved worktree: part name (``head``, ``index``, ``work``, …) → object id."""

    refs: dict[str, str]
    files: int
