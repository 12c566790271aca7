"""Which removed worktrees are worth a place in the pool, and what of them the next start removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.worktrees.saved.names import is_droppable, is_precious, matches, roots_of

if TYPE_CHECKING:
    from swarm.project.config.settings import Settings
    from swarm.project.world import World
    from swarm.worktrees.examine import Target


def wish(world: World, target: Target) -> dict[str, Any] | None:
    """Return what to note about a worktree that may be parked; None if there is, or was, anything special about it.

    It is asked for worktrees in which nothing is staged or hidden. What lies in them is proved later, file by file.
    """
    state, agent = target.state, target.agent
    if not world.settings.worktrees.pool or state is None or target.risks or target.unsafe or agent.box or target.again:
        return None
    placed = {one.path for one in agent.placed}
    if state.modified or state.untracked or target.aside or not placed.issuperset(target.untouched):
        return None
    if target.tree.parent != world.layout.base:
        return None
    ignored = [path for path in state.ignored if path not in placed]
    kept = {path for path in ignored if _stays(path, world.settings)}
    left = [path for path in ignored if path not in kept]
    if not all(is_droppable(path, world.settings.cleanup) for path in left):
        return None
    return {
        "content": state.head_tree,
        "placed": sorted(placed),
        "dropped": _folders(roots_of(left, world.settings.cleanup.bulk)),
        "kept": _folders(roots_of(kept, world.settings.worktrees.keep_ignored)),
    }


def _stays(path: str, settings: Settings) -> bool:
    """Whether an ignored file stays for the next session: it is named, and it is no secret of this one."""
    *folders, name = path.split("/")
    if not any(matches(one, settings.worktrees.keep_ignored) for one in (*folders, name)):
        return False
    return not is_precious(name, settings.cleanup) or any(matches(one, settings.cleanup.installed) for one in folders)


def _folders(roots: tuple[str, ...]) -> list[str]:
    return [one.removesuffix("/") for one in roots]
