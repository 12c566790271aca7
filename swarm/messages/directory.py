"""Find the message folders of a repository and their addresses, without git."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from swarm.bus.addressing import Member
from swarm.machine import session_record
from swarm.machine.identity import absence
from swarm.project.find import main_checkout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATE_DIR = ".swarm"
MESSAGES = "messages"


# --- where ------------------------------------------------------------------------------------------


def find_state(start: str, environ: Mapping[str, str]) -> str | None:
    """Return the ``.swarm`` of the repository around a folder, else what ``SWARM_STATE_DIR`` names, else None.

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
        parent = _parent_in(record)
        for one in session_record.agents(record):
            agent, role, program = (str(one.get(key, "")) for key in ("name", "role", "program"))
            found.append(Member(agent, name, role, session_record.generation(record, agent), program, *parent))
    return tuple(found)


def _parent_in(record: Mapping[str, object]) -> tuple[str, str]:
    """Return address and generation of the agent that started a session; empty texts when it was a person."""
    parent = record.get("parent")
    if not isinstance(parent, dict):
        return "", ""
    return f"{parent.get('agent')}@{parent.get('session')}", str(parent.get("generation"))


def whereabouts(state: str, member: Member) -> str:
    """Return why an agent does not read its messages now; empty when its program runs, or is about to."""
    if not member.program:
        return "it has no program"
    return absence(f"{state}/sessions/{member.session}/run/{member.agent}")
