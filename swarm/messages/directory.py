"""Find the message folders of a repository and their addresses, without git."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from swarm.bus.addressing import Member
from swarm.bus.wire import BOX, is_word
from swarm.machine import locks, session_record
from swarm.machine.identity import absence
from swarm.project.find import main_checkout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATE_DIR = ".swarm"
MESSAGES = "messages"
#: Where each bridge that served the repository has a folder, and in it the lock of its supervisor.
BRIDGES = "bridges"
BRIDGE_LOCK = "lock"


# --- where ------------------------------------------------------------------------------------------


def find_state(start: str, environ: Mapping[str, str]) -> str | None:
    """Return the ``.swarm`` of the repository around a folder, else that in ``SWARM_STATE_DIR``, else None.

    Looks only where a repository usually keeps itself; the rest is for git to find.
    """
    root = main_checkout(start)
    if root is not None:
        return _usable(f"{root}/{STATE_DIR}")
    named = environ.get("SWARM_STATE_DIR", "")
    return _usable(named) if os.path.isabs(named) and os.path.isdir(f"{named}/sessions") else None


def _usable(state: str) -> str | None:
    try:
        info = os.lstat(state)
    except OSError:
        return None
    ours = stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & 0o022
    return state if ours else None


# --- who --------------------------------------------------------------------------------------------


def members(state: str, sessions: Sequence[str] | None = None) -> tuple[Member, ...]:
    """Return every agent, or those of some sessions; a record that cannot be read has none."""
    folder = f"{state}/sessions"
    if sessions is None:
        try:
            sessions = sorted(os.listdir(folder))
        except OSError:
            return ()
    found: list[Member] = []
    for session in sessions:
        record = session_record.read(f"{folder}/{session}")
        name = str(record.get("name", session))
        line = [*_ancestors_in(record.get("parent")), *_ancestors_in(record.get("ancestors"))]
        parent, above = line[0] if line else ("", ""), tuple(line[1:])
        kind = str(record.get("kind", "team"))
        for one in session_record.agents(record):
            agent, role, program = (str(one.get(key, "")) for key in ("name", "role", "program"))
            generation = session_record.generation(record, agent)
            found.append(Member(agent, name, role, generation, program, *parent, above, kind))
    return tuple(found)


def bridges(state: str) -> tuple[Member, ...]:
    """Return every bridge that served the repository."""
    try:
        names = sorted(os.listdir(f"{state}/{BRIDGES}"))
    except OSError:
        return ()
    return tuple(Member(name, "") for name in names if is_word(BOX, name))


def _ancestors_in(data: object) -> list[tuple[str, str]]:
    """Return address and generation of the agents that a record names: one, or a list of them."""
    listed = data if isinstance(data, list) else [data]
    known = [one for one in listed if isinstance(one, dict)]
    return [(f"{one.get('agent')}@{one.get('session')}", str(one.get("generation"))) for one in known]


def whereabouts(state: str, member: Member) -> str:
    """Return why a recipient does not read its messages now; empty when its program runs, or is about to."""
    if not member.session:
        return "" if locks.is_held(f"{state}/{BRIDGES}/{member.agent}/{BRIDGE_LOCK}") else "it does not run"
    if not member.program:
        return "it has no program"
    return absence(f"{state}/sessions/{member.session}/run/{member.agent}")
