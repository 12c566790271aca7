"""Everything a verb may touch, as one value."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swarm.domain.errors import SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swarm.domain.layout import Layout
    from swarm.domain.ports import Git, Host, Merging, Preparing, Processes, Programs, Terminal, Trees
    from swarm.domain.settings import Settings
    from swarm.store.journal import Journal
    from swarm.store.sessions import Sessions


@dataclass(frozen=True, slots=True)
class World:
    """One repository and swarm's files in it.

    Attributes:
        environ: the caller's environment, for what is started.
        progress: told, in a few words, what is being done; never decides anything.
    """

    git: Git
    trees: Trees
    merging: Merging
    host: Host
    layout: Layout
    settings: Settings
    journal: Journal
    sessions: Sessions
    ignore_text: bytes
    terminal: Terminal
    programs: Programs
    processes: Processes
    preparing: Preparing
    environ: Mapping[str, str]
    progress: Callable[[str], None] = lambda _text: None


def new_operation_id() -> str:
    """Return an id for an operation; ids sort by time."""
    return (
        time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        + f"-{time.time_ns() // 1_000_000 % 1000:03d}{secrets.token_hex(4)}"
    )


def no_session(world: World, name: str) -> SessionNotFound:
    """Return what is to be raised; whoever has named an agent is told in which session it is."""
    meant = [f"{agent.name}@{one.name}" for one in world.sessions.all() if (agent := one.agent(name)) is not None]
    hint = f"{name} is no session but an agent: {', '.join(meant[:5])}" if meant else None
    return SessionNotFound(f"there is no session {name}", hint=hint)
