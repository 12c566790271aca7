"""Checks that the names and places of new agents are free: refs, branches, folders, the session."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from swarm.git.errors import BranchExists, RefConflict
from swarm.project import layout as places
from swarm.project.errors import NameCollision
from swarm.project.model import SHARED
from swarm.sessions.errors import AgentExists
from swarm.worktrees import strays
from swarm.worktrees.errors import WorktreeExists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.kit.errors import SwarmError
    from swarm.project.world import World
    from swarm.sessions.create.create_request import Facts, Request

#: Refs of exactly these names leave no room for those below.
_OWN_FOLDERS = ("refs/swarm", "refs/swarm/op", "refs/swarm/salvage")


def refs_around(world: World, request: Request, facts: Facts) -> tuple[tuple[int, int], frozenset[str]]:
    """Return the refs around the wanted branches; those read a moment ago do if no swarm was at work since."""
    mark = world.journal.mark()
    if facts.refs is not None and facts.refs[0] == mark:
        return facts.refs
    prefix = world.settings.worktrees.branch_prefix
    above = [places.HEADS + parent for parent in _parents(prefix)]
    above += [places.HEADS + place.branch for place in request.places if place.branch]
    return mark, world.git.refs_around([*above, *_OWN_FOLDERS], places.HEADS + prefix)


def check_agents(world: World, request: Request, facts: Facts) -> Iterator[SwarmError]:
    """Refuse branches and folders that are taken, or that refs of others leave no room for."""
    prefix = world.settings.worktrees.branch_prefix
    refs = facts.refs[1] if facts.refs else frozenset()
    for name in sorted(ref for ref in refs if not ref.startswith(places.HEADS)):
        yield RefConflict(
            f"the ref {name!r} is in the way: swarm keeps refs below that name",
            hint=f"git update-ref refs/old/{name.removeprefix('refs/')} {name} && git update-ref -d {name}",
        )
    branches = {ref.removeprefix(places.HEADS) for ref in refs}
    for parent in _parents(prefix):
        if parent in branches:
            yield RefConflict(
                f"the branch {parent!r} is in the way: no branch {prefix}/... can exist beside it",
                hint=f"git branch -m {parent} {parent}-old, or set worktrees.branch_prefix to another word",
            )
    there = _listing(request.places_in(world)[0].folder.parent)
    registered = {admin.gitdir for admin in world.git.admin_dirs()}
    for spec, place in zip(request.agents, request.places_in(world), strict=True):
        tree, branch = place.folder, place.branch
        if place.tree == SHARED:
            continue
        yield from _check_path(world, tree, spec.name, request.session, there, registered)
        if not branch or (there.get(tree.name.casefold()) == tree.name and str(tree / ".git") in registered):
            continue  # a worktree: its branch is there, of course
        yield from _check_branch(branch, branches)
        if branch not in branches and _is_broken_ref(world.git.common / places.HEADS / branch):
            yield BranchExists(f"branch {branch} already exists, though git cannot read it")


def check_names(world: World, request: Request) -> Iterator[SwarmError]:
    """Refuse a session whose name differs from another only in case, and agents that it has already."""
    existing = world.sessions.get(request.session)
    if existing is None:
        return
    if existing.name != request.session:
        yield NameCollision(f"session {request.session} differs from session {existing.name} only in case")
    for spec, place in zip(request.agents, request.places_in(world), strict=True):
        there = existing.agent(spec.name)
        if there is not None and (place.tree == SHARED or there.shared):  # else its worktree is in the way
            yield AgentExists(
                f"session {existing.name} has an agent {there.name} already",
                hint=f"bring it back with `swarm resume {there.name}@{existing.name}`, or use another name",
            )


def _check_branch(branch: str, branches: set[str]) -> Iterator[SwarmError]:
    if branch in branches:
        yield BranchExists(f"branch {branch} already exists", details=in_git(branch))
        return
    below = next((other for other in sorted(branches) if other.startswith(branch + "/")), None)
    if below is not None:
        yield RefConflict(f"branch {branch} cannot be made: {below} exists below it")
    same = next((other for other in sorted(branches) if other.casefold() == branch.casefold()), None)
    if same is not None:
        yield NameCollision(f"branch {branch} differs from the existing {same} only in case")


def in_git(branch: str) -> str:
    """Return git's message for a branch that already exists."""
    return f"fatal: a branch named '{branch}' already exists"


def _check_path(
    world: World, tree: Path, agent: str, session: str, there: dict[str, str], registered: set[str]
) -> Iterator[SwarmError]:
    found = there.get(tree.name.casefold())
    if found == tree.name:
        hint = None
        if strays.is_stray(world, tree):
            where = f"{shlex.quote(agent)}@{session}"
            hint = f"it is in no session: `swarm worktree remove {where} --force`, or use a different session name"
        yield WorktreeExists(f"worktree {tree.name} already exists: {tree}", hint=hint, details=str(tree))
    elif found is not None:
        yield NameCollision(f"worktree {tree.name} differs from the existing {found} only in case")
    elif str(tree / ".git") in registered:
        yield WorktreeExists(
            f"worktree {tree.name} is still registered in git, though its folder is gone",
            details=str(tree),
            hint=f"if it is not needed any more: git worktree remove --force {shlex.quote(str(tree))}",
        )


def _is_broken_ref(path: Path) -> bool:
    """Whether a ref's file exists that git does not list: damaged, or pointing at a missing branch.

    git itself would silently replace the second kind.
    """
    return path.is_symlink() or path.is_file()


def _listing(folder: Path) -> dict[str, str]:
    try:
        return {name.casefold(): name for name in os.listdir(folder)}
    except OSError:
        return {}


def _parents(prefix: str) -> list[str]:
    parts = prefix.split("/")
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]
