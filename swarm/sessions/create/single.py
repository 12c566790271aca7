"""Where the one agent of ``swarm run`` works: in a worktree of its own, or just in a folder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import owner
from swarm.git.errors import NotARepo
from swarm.kit.errors import ConfigProblem
from swarm.project.find import main_checkout
from swarm.project.layout import root_dir
from swarm.project.model import SHARED
from swarm.sessions.create.create_request import Place
from swarm.sessions.errors import AgentExists
from swarm.worktrees.errors import WorktreeExists

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role

#: Where a worktree of ``run`` starts when its role does not say.
BRANCH_FROM = "main"
WORKTREES = "worktrees"


def folder_of(world: World, role: Role, cwd: Path) -> Path:
    """Return the folder that a role's ``root_dir`` names.

    Args:
        cwd: where the command was given.

    Raises:
        ConfigProblem: there is no such folder.
    """
    home = world.environ.get("HOME", "")
    found = root_dir(role.options.root_dir, cwd=cwd, swarm_dir=world.swarm_dir, home=home)
    if not found.is_dir():
        raise ConfigProblem(
            f"cannot run {role.name or 'a command'}: its root_dir {found} is not a folder",
            hint=f"a relative path counts from {world.swarm_dir}; make the folder, or correct root_dir",
        )
    return found


def place(world: World, name: str, role: Role, folder: Path) -> Place:
    """Return where an agent works.

    Raises:
        NotARepo: it is to have a worktree, and its folder is in no repository.
    """
    wish = role.options.worktree
    if not wish.enabled:
        return Place(Path(os.path.realpath(folder)), tree=SHARED)
    if main_checkout(folder) is None:
        raise NotARepo(
            f"cannot make a worktree for {name}: its root_dir {folder} is in no git repository",
            hint="correct root_dir of the role, or let it work in the folder itself: worktree: {enabled: false}",
        )
    tree = world.swarm_dir / WORKTREES / name
    return Place(Path(os.path.realpath(tree.parent)) / name, "" if wish.use_detached_head else name)


def again(world: World, session: Session, agent: Agent, wanted: Place) -> None:
    """Refuse to run an agent again at a place that is not as it was.

    Raises:
        AgentExists: it works elsewhere.
        WorktreeExists: what is at the place of its worktree is not that.
    """
    tree = world.layout.root / agent.worktree
    address = f"{agent.name}@{session.name}"
    if (agent.tree, tree) != (wanted.tree, wanted.folder):
        raise AgentExists(
            f"{address} was started in {tree}, and not in {wanted.folder}",
            hint=f"remove it first: swarm cleanup {session.name}; or give the new one another --name",
        )
    admin = owner.own_admin(world, agent)
    if not agent.shared and (admin is None or world.git.pointer_of(tree) != admin.path):
        raise WorktreeExists(
            f"cannot run {address}: {tree} is not a valid worktree any more",
            hint=f"remove what is left of it: swarm worktree remove {shlex.quote(address)} --force",
            details=str(tree),
        )
