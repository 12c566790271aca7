"""Delete removed worktrees in a process that outlives the command, after one more look at each.

    command:  rename away, refs, records ──► the journal's entry goes into the trash ══ the operation is over
    process:  look again: what changed is kept whole ──► the entry goes ──► [park what was clean] ──► delete

Nobody uses the trash of an operation that has no entry in the journal, so whoever holds its lock may delete it.  The
kernel frees that lock with its holder; what is left then the next changing command goes on with.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.git.content.walk import walk
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import locks, own
from swarm.programs.processes import run_aside
from swarm.project import codec
from swarm.project.journal import Journal
from swarm.project.layout import Layout
from swarm.worktrees import pool
from swarm.worktrees.saved import aside

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The journal's entry of an operation whose trees are still to be looked at, in its trash.
NOTE = pool.NOTE
#: The same afterwards, while there may be trees to park.
_PARK = "park.json"
_LIMIT = 64 << 20
#: So many seconds a process may take until it begins.
_BEGINS = 10.0
#: What the process gets of the environment; no mark of an agent's, or it would count as one of the agent's.
_KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")


def hand_over(layout: Layout, operation: str) -> bool:
    """End an operation; its trees are looked at and deleted later.

    Returns:
        False if there is nothing to delete, or its entry cannot be moved: then it is not over.
    """
    folder = layout.trash_folder(operation)
    if not files.is_folder(folder):
        return False
    try:
        return files.rename_within(layout.journal / f"{operation}.json", folder / NOTE)
    except OSError:
        return False


def over(layout: Layout) -> tuple[str, ...]:
    """Return the operations that are over and have something in the trash, oldest first."""
    try:
        names = sorted(own.listdir(os.fspath(layout.trash)))
    except OSError:
        return ()  # no folder, or one that is not ours
    # An entry in the journal is older than the folder in the trash: looked for after it, it is not missed.
    return tuple(n for n in names if pool.is_name(n) and not files.exists(layout.journal / f"{n}.json"))


def is_under_way(layout: Layout, operation: str) -> bool:
    """Whether a process deletes the trash of an operation, or is so young that it may just begin."""
    if operation not in over(layout):
        return False
    with contextlib.suppress(OSError):
        began = os.stat(layout.trash_folder(operation)).st_mtime
        return _is_at_work(layout, operation) or time.time() - began < _BEGINS
    return True  # it has just gone


def trees_in(layout: Layout, operation: str) -> int:
    """Return how many worktrees are in the trash of an operation."""
    try:
        return sum(name.endswith(".tree") for name in own.listdir(os.fspath(layout.trash_folder(operation))))
    except OSError:
        return 0


def _is_at_work(layout: Layout, operation: str) -> bool:
    with _locked(layout.trash_folder(operation)) as mine:
        return mine is False


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool | None]:
    """Lock a folder for this block; False if another process holds it, None if it is not there."""
    try:
        fd = own.folder(os.fspath(folder))
    except OSError:
        yield None
        return
    try:
        yield locks.try_lock(fd)
    finally:
        os.close(fd)


def look_again(layout: Layout, operation: str) -> None:
    """Keep worktrees whole that changed since they were saved; return when this or another process has done so."""
    note = layout.trash_folder(operation) / NOTE
    while files.exists(note):
        with _locked(note.parent) as mine:
            if mine:
                _look_again(layout, operation)
        if not mine:
            time.sleep(0.005)


def _look_again(layout: Layout, operation: str) -> None:
    folder = layout.trash_folder(operation)
    try:
        record = codec.decode(files.read_small(folder / NOTE, _LIMIT), str(folder / NOTE))
    except FileNotFoundError:
        return
    for item in record["targets"]:
        tree = folder / f"{pool.name_of(item)}.tree"
        if item.get("later") and files.is_folder(tree) and walk(tree).fingerprint != item["fingerprint"]:
            admin = folder / f"{pool.name_of(item)}.admin"
            kept = layout.salvage_folder(item["session"], item["agent"], item.get("operation", operation))
            aside.keep_whole(tree, admin if files.is_folder(admin) else None, kept)
            tell(layout, operation, record, f"{item['agent']} changed after it was saved: kept whole in {kept}")
    if any(item.get("park") for item in record["targets"]) and record.get("pool"):
        files.rename_if_there(folder / NOTE, folder / _PARK)
    else:
        files.unlink_if_there(folder / NOTE)
    # From here on trees are incomplete: neither the note nor the journal's entry may come back with a power cut.
    files.sync_folder(folder)
    files.sync_folder(layout.journal)


def tell(layout: Layout, operation: str, record: dict[str, Any], outcome: str) -> None:
    """Add a line about a tree that was kept whole to the history."""
    with contextlib.suppress(OSError):
        Journal(layout).log(
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            operation=operation,
            verb=record["verb"],
            session=record["session"],
            actor="swarm",
            outcome=outcome,
            pid=os.getpid(),
        )


def start(layout: Layout) -> None:
    """Start the process that looks and deletes; where that fails the next command does."""
    if not any(not _is_at_work(layout, operation) for operation in over(layout)):
        return
    argv = [sys.executable, "-P", "-m", __name__, os.fspath(layout.root)]
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    run_aside(argv, environ, cwd="/")  # in no folder of the user's, who may want to remove it


def run(layout: Layout) -> None:
    """Check and delete the trash of finished operations, except trash on which another process works."""
    for operation in over(layout):
        with _locked(layout.trash_folder(operation)) as mine:
            if mine:
                _look_again(layout, operation)
                with contextlib.suppress(OSError, SwarmError, ValueError, KeyError):  # what is not parked is deleted
                    _park(layout, operation)
                with contextlib.suppress(PermissionError):  # files of another user stay; the rest goes
                    files.remove_tree(layout.trash_folder(operation))


def park_no_more(layout: Layout) -> None:
    """Let no process begin to park what is in the trash now."""
    for operation in over(layout):
        files.unlink_if_there(layout.trash_folder(operation) / _PARK)


def _park(layout: Layout, operation: str) -> None:
    file = layout.trash_folder(operation) / _PARK
    if files.exists(file):
        record = codec.decode(files.read_small(file, _LIMIT), str(file))
        pool.park(layout, layout.trash_folder(operation), record)


def main() -> None:
    """Run as the process that deletes: silent, and at the lowest priority."""
    os.umask(0o077)
    os.nice(19)
    layout = Layout(Path(sys.argv[1]))
    own.trust(os.fspath(layout.state))
    with contextlib.suppress(OSError):  # the repository may be removed meanwhile
        run(layout)


if __name__ == "__main__":
    main()
