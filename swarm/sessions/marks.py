"""Lock and unlock a worktree, and update the role text in it."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

from swarm.agents import view
from swarm.git import owner
from swarm.kit import files
from swarm.kit.errors import SymlinkInTheWay, UsageProblem
from swarm.machine.processes import boot_id
from swarm.project.model import Placed
from swarm.project.world import new_operation_id
from swarm.sessions import listing
from swarm.worktrees import hiding, transaction
from swarm.worktrees.errors import WorkAtRisk, WorktreeNotFound, no_own_tree
from swarm.worktrees.lock_reason import is_running_reason, running_reason
from swarm.worktrees.steps import file_steps

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.messages.office.post import Post
    from swarm.project.model import AdminDir, Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role
    from swarm.sessions.values import WorktreeInfo


#: git keeps it in a file that is read whenever its worktrees are looked at.
_LONGEST_REASON = 1000


def lock(world: World, session: Session, agent: Agent, reason: str) -> WorktreeInfo:
    """Lock the worktree in git's own way, so that git respects it too."""
    if "\n" in reason or "\0" in reason or len(reason) > _LONGEST_REASON:
        raise UsageProblem(f"a lock reason is one line of text, at most {_LONGEST_REASON} characters")
    world.git.lock(_admin(world, agent), reason)
    return _info(world, session, agent)


def unlock(world: World, session: Session, agent: Agent) -> WorktreeInfo:
    """Take the user's lock away; without one nothing happens. A running agent keeps swarm's own lock.

    Raises:
        WorkAtRisk: there is only that one.
    """
    admin = _admin(world, agent)
    if not view.state_of(world, session, agent).runs:
        world.git.unlock(admin)
        return _info(world, session, agent)
    if is_running_reason(admin.locked):
        raise WorkAtRisk(
            f"cannot unlock {agent.name}@{session.name}: the agent is running, and this lock protects its worktree",
            hint=f"the lock goes when the agent stops: swarm stop {agent.name}@{session.name}",
        )
    world.git.lock(admin, running_reason(agent.name, session.name))
    return _info(world, session, agent)


def refuse_shared(session: Session, agent: Agent) -> None:
    """Refuse to change the worktree of an agent that has none: the folder where it works is not its own.

    Raises:
        WorktreeNotFound
    """
    if agent.shared:
        raise no_own_tree(f"{agent.name}@{session.name}", agent.worktree)


def _admin(world: World, agent: Agent) -> AdminDir:
    tree = world.layout.root / agent.worktree
    admin = owner.own_admin(world, agent)
    if admin is None:
        raise WorktreeNotFound(f"worktree {tree.name} does not exist any more: {tree}")
    return admin


def _info(world: World, session: Session, agent: Agent) -> WorktreeInfo:
    found = listing.worktrees(world, session.name, (), look=False)
    return next(info for info in found if info.agent == agent.name)


def update_role(world: World, session: Session, agent: Agent, role: Role, *, force: bool) -> WorktreeInfo:
    """Write the role's present text over the one swarm put in; an edited file only with *force*, and it is kept."""
    tree = world.layout.root / agent.worktree
    if not tree.is_dir():
        raise WorktreeNotFound(f"worktree {tree.name} does not exist any more: {tree}")
    file = agent.placed[0].path if agent.placed else world.settings.worktrees.instructions_file
    path = tree / file
    _refuse_foreign(world, agent, path, force=force)
    hiding.hide_now(world, file, tree)
    operation = new_operation_id()
    kept = _keep_edited(world, agent, path, f"{agent.name}-{session.name}.{operation}.{file}")
    record: dict[str, Any] = {
        "kind": "role",
        "operation": operation,
        "verb": "role update",
        "session": session.name,
        "started_ns": time.time_ns(),
        "boot": boot_id(),
        "pid": os.getpid(),
        "agent": agent.name,
        "file": file,
        "was": _digest(path),
        "text": role.instructions,
        "locks": [],
    }
    world.journal.write(record["operation"], record)
    put_role(world, record)
    return _info(world, session, agent)._replace(kept=kept)


def has_old_role(agent: Agent, role: Role) -> bool:
    """Whether swarm put another text of its role into an agent's worktree than the role has now."""
    return any(placed.sha256 != file_steps.digest(role.instructions) for placed in agent.placed[:1])


def tell_new_role(post: Post, agent: Agent, session: Session) -> None:
    """Tell an agent that its role has a new text."""
    body = (
        f"The instructions of your role {agent.role} have changed. Read {agent.placed[0].path} at the top of your "
        "worktree again, and follow it from now on."
    )
    post.send(f"{agent.name}@{session.name}", body, subject="your instructions changed", type="role")


def _keep_edited(world: World, agent: Agent, path: Path, name: str) -> Path | None:
    """Keep edits of the file; git does not see it, so they would exist nowhere else."""
    if _digest(path) in ("", *(placed.sha256 for placed in agent.placed)):
        return None
    kept = world.layout.salvage / "instructions" / name
    files.make_private_dir(kept.parent.parent)
    files.make_private_dir(kept.parent)
    files.write_atomic(kept, files.read_small(path))
    return kept


def put_role(world: World, record: dict[str, Any]) -> str:
    """Write the text, then the record that knows its checksum; a crash between the two must not set them apart."""
    session = world.sessions.get(record["session"])
    agent = session.agent(record["agent"]) if session is not None else None
    if session is not None and agent is not None:
        new = file_steps.digest(record["text"])
        path = world.layout.root / agent.worktree / record["file"]
        if path.parent.is_dir() and _digest(path) == record["was"]:  # else edited since: that stays
            files.write_atomic(path, record["text"].encode("utf-8", "surrogateescape"), 0o644)
        placed = (Placed(record["file"], new),)
        agents = tuple(one._replace(placed=placed) if one.name == agent.name else one for one in session.agents)
        world.sessions.write(session._replace(agents=agents))
    transaction.close(world, record, "done")
    return "done"


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(files.read_small(path)).hexdigest()
    except FileNotFoundError:
        return ""


def _refuse_foreign(world: World, agent: Agent, path: Path, *, force: bool) -> None:
    if path.is_symlink():
        raise SymlinkInTheWay(f"cannot write {path}: it is a symbolic link")
    if world.git.tracked("HEAD", (path.name,)) or (path.exists() and not agent.placed):
        raise WorkAtRisk(
            f"{path.name} is the project's own file and stays as it is", hint="the role's text was not put in"
        )
    if not path.exists() or force:
        return
    if hashlib.sha256(files.read_small(path)).hexdigest() != agent.placed[0].sha256:
        raise WorkAtRisk(
            f"{path.name} was edited in {path.parent.name}", hint="add --force to replace it; the edited one is kept"
        )
