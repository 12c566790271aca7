"""What stands in the way of the removal of a worktree, also with force."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from swarm.git import owner
from swarm.kit import files as fsio
from swarm.kit.errors import SymlinkInTheWay
from swarm.messages.inboxes import events_folder, inbox_folder
from swarm.project.layout import is_place_of_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.project.model import AdminDir, Agent, Session
    from swarm.project.world import World


class Hindrance(NamedTuple):
    """Something in the way of a removal.

    Attributes:
        why: what it is; empty when nothing is in the way.
        way_out: what has to be done by hand before.
        hides_nothing: what the worktree holds can be looked at all the same.
    """

    why: str = ""
    way_out: str = ""
    hides_nothing: bool = False


def of_removal(
    world: World, session: Session, agent: Agent, tree: Path, admin: AdminDir | None, admins: Sequence[AdminDir]
) -> Hindrance:
    """Look at the very path that would be removed, and at every folder that the removal needs."""
    found = link(world, session, agent, admin)
    return found if found.why else _of_tree(world, session, tree, admin, admins)


def link(world: World, session: Session, agent: Agent, admin: AdminDir | None) -> Hindrance:
    """Look for a link: found half way through the removal, it would hold up every command."""
    layout = world.layout
    salvage = layout.salvage_folder(session.name, agent.name, "")
    boxes = [folder_of(world, session.name, agent.name) for folder_of in (inbox_folder, events_folder)]
    boxes.append(layout.state / "messages" / "blobs")
    try:
        for folder in (layout.base, layout.trash, layout.run_folder(session.name, agent.name), *boxes, salvage):
            fsio.is_folder(folder, refuse_links=True)
        if admin is not None:
            world.git.refuse_links(admin.path)
    except SymlinkInTheWay as problem:
        return Hindrance(problem.message, problem.hint, hides_nothing=True)
    return Hindrance()


def _of_tree(
    world: World, session: Session, tree: Path, admin: AdminDir | None, admins: Sequence[AdminDir]
) -> Hindrance:
    base = world.layout.root.resolve()
    if not tree.parent.resolve().is_relative_to(base) and not is_place_of_run(tree, session.swarm_dir):
        return Hindrance("its folder leads out of the repository")
    if tree in (world.layout.root, *world.layout.root.parents):
        return Hindrance("it is the main checkout")
    if tree.is_symlink() and (tree / ".git").is_dir():
        way_out = f"remove the link with `rm {shlex.quote(str(tree))}`"
        return Hindrance("it is a symbolic link to another repository", way_out)
    if (tree / ".git").is_dir():
        way_out = f"move it away with `mv {shlex.quote(str(tree))} PATH`, then clean up: what git knows of it is saved"
        return Hindrance("it is a repository of its own now", way_out)
    if inner := owner.linked_within(tree, admin, admins):
        # What git notes about those is not in the folder, so they could neither be saved with it nor come back.
        first = shlex.quote(str(tree / inner[0]))
        way_out = f"first `git worktree move {first} PATH`, or `git worktree remove {first}`"
        why = f"another worktree of the repository is inside it: {', '.join(inner)}"
        return Hindrance(why, way_out, hides_nothing=True)
    return Hindrance()
