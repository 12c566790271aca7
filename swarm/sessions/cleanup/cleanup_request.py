"""The targets of a cleanup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.project.model import Session
    from swarm.roles.role import Role


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a cleanup.

    Attributes:
        agents: (session, agent) pairs, beside the whole sessions.
        everything: all sessions, and swarm's branches without a worktree.
        elsewhere: of all sessions, also those made with another swarm directory; else they are skipped.
        older_than_ms: only sessions of at least this age; what is at risk is skipped then.
        only_missing: only agents whose folder is gone.
        role: how the role of an agent is found, for its teardown; None runs no teardown.
        verb: what `swarm log` calls it.
    """

    sessions: tuple[str, ...] = ()
    agents: tuple[tuple[str, str], ...] = ()
    everything: bool = False
    elsewhere: bool = True
    force: bool = False
    discard: bool = False
    keep_branches: bool = False
    older_than_ms: int | None = None
    only_missing: bool = False
    role: Callable[[Session, str], Role] | None = None
    verb: str = "cleanup"
