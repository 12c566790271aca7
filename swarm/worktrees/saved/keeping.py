"""Put refs on new objects, safe against a ``git gc`` that runs at the same time.

``git gc --prune=now`` notes which objects are named, and then removes the others, however young they are.  What it does
not find in its notes goes, also when a ref names it by then.  A ``git prune`` or ``git repack`` does the same.  So
nothing is taken for kept before such a process has ended.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from swarm.git.errors import GitBroken, GitBusy, GitFailed, GitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from swarm.project.world import World

#: How long a gc is waited for; a big repository takes minutes.
_PATIENCE = 600.0
_HINT = "if a `git gc` or `git prune` ran meanwhile, do it again when that has ended; else look at `git fsck`"


def keep(world: World, write: Callable[[], Mapping[str, str]], message: str, known: Sequence[str]) -> Mapping[str, str]:
    """Write objects, put refs on them, and verify all of them; repeat if some were deleted.

    Args:
        write: writes the objects, and returns ref → object.
        known: commits that certainly are there.

    Raises:
        GitFailed, GitBroken, NoSpace: no ref is left.
    """
    try:
        return _once(world, write, message, known)
    except (GitTimeout, GitBusy):
        raise
    except (GitFailed, GitBroken):
        _await_gc(world)
    try:
        return _once(world, write, message, known)
    except (GitFailed, GitBroken) as error:
        error.hint = _HINT
        raise


def _once(
    world: World, write: Callable[[], Mapping[str, str]], message: str, known: Sequence[str]
) -> Mapping[str, str]:
    refs = write()
    world.git.change_refs(create=refs, reason=message)
    try:
        _await_gc(world)
        world.trees.check_saved(refs.values(), known)
    except (GitFailed, GitBroken):
        world.git.change_refs(delete=refs, reason=message)
        raise
    return refs


def _await_gc(world: World) -> None:
    """Wait until no gc is at work in the repository any more."""
    deadline = time.monotonic() + _PATIENCE
    pid = world.git.collector()
    if pid:
        world.progress(f"waiting for your `git gc` or `git prune` (process {pid}) to end")
    while pid:
        if time.monotonic() > deadline:
            raise GitBusy(
                f"cannot save beside your `git gc` or `git prune`: process {pid} has not ended within {_PATIENCE:g} s"
            )
        time.sleep(0.05)
        pid = world.git.collector()
