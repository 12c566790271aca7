"""Notes about the files that a setup put into a worktree."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.machine import records
from swarm.worktrees.setup.setup_values import Ended, Notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from swarm.project.world import World

NOTES, LOG = "setup.json", "setup.log"
#: What the commands of the last failure printed; their run folder may be gone by then.
FAILED_LOG = "setup-failed.log"
#: In the notes of a removed worktree.
AGAIN = "again"
_LIMIT = 64 << 20


def folder_of(world: World, session: str, agent: str) -> Path:
    """Return an agent's run folder, made where it is not there."""
    folder = world.layout.run_folder(session, agent)
    for part in (world.layout.sessions, folder.parent.parent, folder.parent, folder):
        files.make_private_dir(part)
    return folder


def write(world: World, session: str, agent: str, notes: Notes) -> None:
    """Write the notes of a setup."""
    give_back(
        world,
        session,
        agent,
        {
            "schema": 1,
            "copied": notes.copied,
            "linked": notes.linked,
            "copies": list(notes.copies),
            "seconds": round(notes.seconds, 3),
            "commands": [
                {"line": one.line, "outcome": one.outcome, "seconds": round(one.seconds, 3), "tail": list(one.tail)}
                for one in notes.commands
            ],
            "warnings": list(notes.warnings),
            "left": dict(notes.left),
        },
    )


def give_back(world: World, session: str, agent: str, plain: Mapping[str, Any]) -> None:
    """Write the notes that `plain` gave."""
    data = json.dumps(plain, ensure_ascii=True).encode("ascii")
    files.write_atomic(folder_of(world, session, agent) / NOTES, data, durable=False)


def plain(world: World, session: str, agent: str) -> dict[str, Any] | None:
    """Return the notes as they are kept; None where there are none that can be read."""
    try:
        return records.read_object(str(world.layout.run_folder(session, agent) / NOTES), _LIMIT)
    except (OSError, ValueError):
        return None


def to_save(world: World, session: str, agent: str, again: AbstractSet[str]) -> dict[str, Any] | None:
    """Return the notes for a restore; *again* lists the unchanged copies that it must make again."""
    found = plain(world, session, agent)
    copies = found.get("copies") if found else None
    return {**found, AGAIN: [one for one in copies if one in again]} if found and isinstance(copies, list) else found


def read(world: World, session: str, agent: str) -> Notes | None:
    """Return the notes of a setup; None without a setup or its notes."""
    data = plain(world, session, agent)
    log = world.layout.run_folder(session, agent) / LOG
    if data is None:
        return None
    try:
        return Notes(
            copied=int(data["copied"]),
            linked=int(data["linked"]),
            seconds=float(data["seconds"]),
            commands=tuple(_ended(one) for one in data["commands"]),
            warnings=tuple(str(one) for one in data["warnings"]),
            left={str(path): str(mark) for path, mark in data["left"].items()},
            log=str(log) if files.exists(log) else "",
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # the agent can write to the folder: its own files there do not count


def _ended(data: Any) -> Ended:
    tail = tuple(str(line) for line in data["tail"])
    return Ended(str(data["line"]), str(data["outcome"]), float(data["seconds"]), tail)


def links_among(paths: Iterable[str], main: Path, tree: Path) -> frozenset[str]:
    """Return those paths at which a worktree has the link to the main checkout's own that a setup puts there."""
    return frozenset(path for path in paths if _readlink(tree / path) == _target(path, main, tree))


def links_in(plain: Mapping[str, Any], main: Path, tree: Path) -> tuple[str, ...]:
    """Return where some notes say that there was such a link."""
    left = plain.get("left")
    found = left.items() if isinstance(left, dict) else ()
    return tuple(path for path, mark in found if mark == f"link {_target(path, main, tree)}")


def _target(path: str, main: Path, tree: Path) -> str:
    return os.path.relpath(main / path, (tree / path).parent)


def _readlink(path: Path) -> str:
    try:
        return os.readlink(path)  # as it is written
    except OSError:
        return ""


def untouched(world: World, session: str, agent: str, tree: Path) -> frozenset[str]:
    """Return the unchanged files of a worktree's setup: swarm can make them again, so they are not work."""
    notes = read(world, session, agent)
    if notes is None or not notes.left:
        return frozenset()
    now = world.preparing.signatures(tree, tuple(notes.left))
    return frozenset(path for path, mark in notes.left.items() if mark and now[path] == mark)


def forget(world: World, session: str, agent: str) -> None:
    """Remove the run folder, and the folders around it that are empty then."""
    folder = world.layout.run_folder(session, agent)
    files.remove_tree(folder)
    for parent in (folder.parent, folder.parent.parent):
        if parent.is_dir():
            files.remove_empty(parent)
