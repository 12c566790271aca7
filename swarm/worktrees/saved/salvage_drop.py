"""Drop saved work: mark it, and delete it when its time is over."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from swarm.kit import files as fsio
from swarm.kit.errors import UsageProblem
from swarm.machine.processes import boot_id
from swarm.project.world import new_operation_id
from swarm.worktrees import transaction
from swarm.worktrees.errors import SalvageNotFound
from swarm.worktrees.saved import dropped
from swarm.worktrees.saved.salvage import entries, forget_refs, meant

if TYPE_CHECKING:
    from swarm.project.world import World
    from swarm.worktrees.reports import SalvageEntry


def drop(
    world: World, targets: tuple[str, ...], *, everything: bool, older_than_ms: int | None, now: bool = False
) -> tuple[SalvageEntry, ...]:
    """Drop every entry that the targets name; they can be restored until their time is over.

    Args:
        now: delete them at once, also those that were dropped before.
    """
    now = now or not world.settings.cleanup.keep_dropped
    chosen = to_drop(world, targets, everything=everything, older_than_ms=older_than_ms, now=now)
    if chosen and now:
        _delete(world, chosen)
    elif chosen:
        dropped.mark(world, chosen)
        transaction.note(world, new_operation_id(), "salvage drop", "", "done")
    sweep(world)
    return tuple(chosen)


def to_drop(
    world: World, targets: tuple[str, ...], *, everything: bool, older_than_ms: int | None, now: bool
) -> list[SalvageEntry]:
    """Return the entries that are meant.

    Raises:
        SalvageNotFound, UsageProblem
    """
    if not targets and not everything and older_than_ms is None:
        raise UsageProblem("nothing named to drop", hint="name entries, or use --all or --older-than")
    chosen = _named(world, targets, now=now)
    if older_than_ms is not None:
        limit = time.time_ns() // 1_000_000 - older_than_ms
        chosen = [entry for entry in chosen if entry.created_ms <= limit]
    return chosen


def _named(world: World, targets: tuple[str, ...], *, now: bool) -> list[SalvageEntry]:
    sorts = (False, True) if now else (False,)
    if not targets:
        return [entry for gone in sorts for entry in entries(world, gone=gone)]
    chosen: dict[str, SalvageEntry] = {}
    for target in targets:
        found = [entry for gone in sorts for entry in meant(world, target, gone=gone)]
        if not found:
            raise SalvageNotFound(f"nothing is saved under {target}")
        chosen.update((entry.name, entry) for entry in found)
    return list(chosen.values())


def sweep(world: World) -> None:
    """Delete entries dropped longer ago than the settings allow."""
    over = dropped.expired(world)
    if over:
        _delete(world, [entry for entry in entries(world, gone=True) if entry.name in over])
        dropped.forget(world, over)  # also missing ones


def _delete(world: World, chosen: list[SalvageEntry]) -> None:
    """Delete entries; the files go first, so that a crash leaves an entry that can be deleted again."""
    if chosen:
        _drop_all(world, _drop_record(world, chosen))


def _drop_record(world: World, chosen: list[SalvageEntry]) -> dict[str, Any]:
    """Record the dropped entries: a killed git leaves lock files that recovery must know as ours."""
    operation = new_operation_id()
    record = {
        "kind": "drop",
        "operation": operation,
        "verb": "salvage drop",
        "session": "",
        "started_ns": time.time_ns(),
        "boot": boot_id(),
        "pid": os.getpid(),
        "entries": [[entry.session, entry.agent, entry.id] for entry in chosen],
        "locks": [str(lock) for lock in world.git.ref_locks(()) if not fsio.exists(lock)],
    }
    world.journal.write(operation, record)
    return record


def _drop_all(world: World, record: dict[str, Any]) -> None:
    """Drop every entry of a record, except those that an earlier try has dropped."""
    for session, agent, salvage_id in record["entries"]:
        _drop_one(world, session, agent, salvage_id)
    dropped.forget(world, (f"{session}/{agent}@{salvage_id}" for session, agent, salvage_id in record["entries"]))
    transaction.close(world, record, "done")


def _drop_one(world: World, session: str, agent: str, salvage_id: str) -> None:
    folder = world.layout.salvage_folder(session, agent, salvage_id)
    if folder.is_dir():
        trash = world.layout.trash / f"salvage-{salvage_id}-{agent}-{time.time_ns()}"
        fsio.make_folders(trash.parent, 0o700)
        fsio.rename_if_there(folder, trash)
        fsio.remove_tree(trash)
    for parent in (folder.parent, folder.parent.parent, folder.parent.parent.parent, world.layout.trash):
        if parent.is_dir():
            fsio.remove_empty(parent)
    forget_refs(world, session, agent, salvage_id)


def continue_drop(world: World, record: dict[str, Any]) -> str:
    """Finish an interrupted drop."""
    transaction.clear_locks(world, record)
    _drop_all(world, record)
    return "done"
