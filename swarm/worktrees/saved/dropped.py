"""Saved work that was dropped: it can be restored for a while, and is deleted by a later cleanup or drop.

A drop is a line in one file; the refs and files of the entry stay as they are until their time is over.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.machine import records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.project.world import World
    from swarm.worktrees.reports import SalvageEntry

_LIMIT = 16 << 20


def since(world: World) -> dict[str, int]:
    """Return the names of dropped entries, and when that was, in milliseconds since 1970.

    What cannot be read counts as not dropped: then nothing is deleted too early.
    """
    try:
        found = records.read_object(str(world.layout.dropped), _LIMIT)["dropped"]
        return {str(name): int(at_ms) for name, at_ms in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def mark(world: World, entries: Iterable[SalvageEntry]) -> None:
    """Write down that entries are dropped, as of now."""
    now = time.time_ns() // 1_000_000
    _write(world, {**dict.fromkeys((entry.name for entry in entries), now), **since(world)})


def forget(world: World, names: Iterable[str]) -> None:
    """Take entries out that are deleted."""
    found = since(world)
    gone = found.keys() & set(names)
    if gone:
        _write(world, {name: at_ms for name, at_ms in found.items() if name not in gone})


def expired(world: World) -> set[str]:
    """Return the names of those whose time is over."""
    limit = time.time_ns() // 1_000_000 - world.settings.cleanup.keep_dropped
    return {name for name, at_ms in since(world).items() if at_ms <= limit}


def _write(world: World, found: dict[str, int]) -> None:
    if found:
        record = {"schema": 1, "dropped": found}
        files.write_atomic(world.layout.dropped, json.dumps(record).encode("ascii"))
    else:
        files.unlink_if_there(world.layout.dropped)
