"""One agent's changes, committed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.merging.conflicts import base_of, branch_tip, checkout_of
from swarm.merging.values import DiffReport, Snapshot
from swarm.worktrees.errors import WorktreeNotFound, no_own_tree

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World


def report(world: World, session: Session, agent: Agent, *, patch: bool = True) -> DiffReport:
    """Compare an agent's branch with where it left its base branch, and its worktree with its branch.

    Args:
        patch: also write the differences out.
    """
    if agent.shared:
        raise no_own_tree(f"{agent.name}@{session.name}", agent.worktree)
    checkout = checkout_of(world, agent)
    with world.merging.quarantine() as box:
        if checkout is not None:
            seen = box.snapshot(checkout, untracked=False)
        else:
            tip = branch_tip(world, agent.branch)
            if not tip:
                raise WorktreeNotFound(f"the worktree and the branch of {agent.name}@{session.name} are gone")
            seen = Snapshot(tip, tip)
        _, onto = base_of(world, session)
        fork = box.graph((onto, seen.head)).fork(onto, seen.head) if onto else ""
        if not fork or fork == seen.head:  # all of it has landed, or there is no such branch any more
            fork = agent.base
        return DiffReport(
            session=session.name,
            agent=agent.name,
            branch=agent.branch,
            path=world.layout.root / agent.worktree,
            base=fork,
            head=seen.head,
            commits=world.trees.commits(seen.head, fork),
            files=box.files(fork, seen.head),
            patch=box.patch(fork, seen.head) if patch else "",
            uncommitted=box.files(seen.head, seen.commit),
            uncommitted_patch=box.patch(seen.head, seen.commit) if patch else "",
            staged=seen.staged,
            untracked=seen.untracked,
            missing=checkout is None,
        )
