"""The commit on which a session's work lands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.project import layout as places

if TYPE_CHECKING:
    from swarm.project.model import Session
    from swarm.project.world import World


def landing_place(world: World, session: Session) -> str:
    """Return the commit in which the session's work would have landed; empty without one."""
    ref = places.HEADS + session.base_ref
    return world.git.tips(ref).get(ref) or world.git.resolve_commit("HEAD") or ""
