"""Find the message folders of a repository and their addresses, without git."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.bus.addressing import Member
from swarm.machine import records
from swarm.machine.identity import absence, generation_in, read_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATE_DIR = ".swarm"
MESSAGES = "messages"
_POINTER_LIMIT = 4096


# --- where ------------------------------------------------------------------------------------------


def find_state(start: str, environ: Mapping[str, str]) -> str | None:
    """Return the ``.swarm`` of the repository around a folder, else what ``SWARM_STATE_DIR`` names, else None.

    Looks only where a repository usually keeps itself; the rest is for git to find.
    """
    root = find_root(start)
    if root is not None:
        return _usable(f"{root}/{STATE_DIR}")
    named = environ.get("SWARM_STATE_DIR", "")
    return _usable(named) if os.path.isabs(named) and os.path.isdir(f"{named}/sessions") else None


def find_root(start: str) -> str | None:
    """Return the main checkout of the repository around a folder; None: there is none."""
    folder = os.path.abspath(start)
    while True:
        git = folder + "/.git"
        try:
            info = os.stat(git)
        except OSError:
            if folder == "/":
                return None
            folder = os.path.dirname(folder)
        else:
            return folder if records.is_folder(info) else _main_checkout(git, folder)


def _main_checkout(pointer: str, folder: str) -> str:
    """Return the main checkout of a linked worktree; the folder itself when it is none."""
    try:
        admin = _text(pointer).removeprefix("gitdir: ")
        admin = os.path.join(folder, admin)
        common = os.path.normpath(os.path.join(admin, _text(admin + "/commondir")))
    except (OSError, ValueError):
        return folder
    return os.path.dirname(common) if os.path.basename(common) == ".git" else folder


def _text(path: str) -> str:
    return os.fsdecode(records.read_bytes(path, _POINTER_LIMIT)).rstrip("\n")


def _usable(state: str) -> str | None:
    try:
        info = os.lstat(state)
    except OSError:
        return None
    ours = records.is_folder(info) and info.st_uid == os.geteuid() and not info.st_mode & 0o022
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
        record = read_session(f"{folder}/{session}")
        agents = record.get("agents")
        name = str(record.get("name", session))
        parent = _parent_in(record)
        for one in agents if isinstance(agents, list) else ():
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                agent = one["name"]
                role, program = str(one.get("role", "")), str(one.get("program", ""))
                found.append(Member(agent, name, role, generation_in(record, agent), program, *parent))
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
