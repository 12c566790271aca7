"""Rebuild a lost session record from the copies in git's worktree folders.

``.swarm/`` can be lost as a whole: a ``git clean`` that is told to remove ignored folders takes it, too.  Then nobody
would know whose the worktrees are that are still there.  The copies go with the worktrees, so none of them outlives
what it is about; what they say is as of the last time that the set was changed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.project import codec
from swarm.project.layout import RECORD_COPY

if TYPE_CHECKING:
    from swarm.project.model import AdminDir, Session
    from swarm.project.world import World


def leave_copies(world: World, session: Session) -> None:
    """Put a copy of a new record into each worktree's admin folder, where it can be written."""
    data = codec.session_to_bytes(session)
    for agent in session.agents:
        if agent.shared:
            continue
        folder = world.git.common / "worktrees" / agent.admin
        if folder.is_dir():
            with suppress(OSError, SwarmError):
                files.write_atomic(folder / RECORD_COPY, data, durable=False)


def adopt(world: World) -> tuple[str, ...]:
    """Rebuild missing records from the existing worktrees; return the names of their sessions."""
    known = {agent.admin for session in world.sessions.all() for agent in session.agents}
    lost: dict[str, list[tuple[AdminDir, Session]]] = {}
    for admin in world.git.admin_dirs():
        if admin.name not in known and (copy := _copy(admin)) is not None:
            lost.setdefault(copy.name, []).append((admin, copy))
    return tuple(name for name, found in lost.items() if world.sessions.get(name) is None and _write(world, found))


def has_copies(world: World) -> bool:
    """Whether worktrees of sessions exist, with or without records."""
    return any((admin.path / RECORD_COPY).is_file() for admin in world.git.admin_dirs())


def _copy(admin: AdminDir) -> Session | None:
    path = admin.path / RECORD_COPY
    try:
        return codec.session_from_bytes(files.read_small(path), str(path))
    except (OSError, SwarmError):
        return None


def _write(world: World, found: list[tuple[AdminDir, Session]]) -> bool:
    newest = max((copy for _, copy in found), key=lambda copy: len(copy.operations))
    there = {admin.name: admin.gitdir for admin, _ in found}
    agents = tuple(
        agent
        for agent in newest.agents
        # else it was moved away
        if agent.shared or there.get(agent.admin) == str(world.layout.root / agent.worktree / ".git")
    )
    if agents:
        world.sessions.write(newest._replace(agents=agents))
    return bool(agents)
