"""One agent's changes, committed or not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.merging import acting
from swarm.merging.conflicts import base_of, branch_tip, checkout_of
from swarm.merging.values import DiffReport, Snapshot
from swarm.worktrees.errors import WorktreeNotFound, no_own_tree

if TYPE_CHECKING:
    from swarm.git.changes import Checkout
    from swarm.merging.quarantine import Quarantine
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
        committed, uncommitted = box.files(fork, seen.head), box.files(seen.head, seen.commit)
        there = (*(one.path for one in (*committed, *uncommitted) if one.status != "deleted"), *seen.untracked)
        ignored = _ignored(world, agent, box, checkout) if checkout is not None else ()
        return DiffReport(
            session=session.name,
            agent=agent.name,
            branch=agent.branch,
            path=world.layout.root / agent.worktree,
            base=fork,
            head=seen.head,
            commits=world.trees.commits(seen.head, fork),
            files=committed,
            patch=box.patch(fork, seen.head) if patch else "",
            uncommitted=uncommitted,
            uncommitted_patch=box.patch(seen.head, seen.commit) if patch else "",
            staged=seen.staged,
            untracked=seen.untracked,
            missing=checkout is None,
            acting=tuple(acting.acting(dict.fromkeys((*there, *ignored)), _hooks(world))),
        )


def _ignored(world: World, agent: Agent, box: Quarantine, checkout: Checkout) -> tuple[str, ...]:
    """Return the ignored files that can act on the machine, but for those that swarm put into the worktree."""
    found = box.ignored(checkout, acting.often_ignored())
    placed = {one.path for one in agent.placed}
    return tuple(path for path in found if path not in placed and not _is_the_users(world, checkout, path))


def _is_the_users(world: World, checkout: Checkout, path: str) -> bool:
    """Whether the main checkout has the same file: the project's setup copies and links some."""
    try:
        return files.read_small(world.layout.root / path) == files.read_small(checkout.tree / path)
    except (OSError, SwarmError):
        return False


def _hooks(world: World) -> str:
    """Return the folder of the worktree from which git takes its hooks; empty where it takes them from elsewhere."""
    hook = world.git.hook("pre-commit")
    return "" if os.path.isabs(hook) else os.path.normpath(os.path.dirname(hook)) if hook else ""
