"""Remove saved worktrees; after a kill a later command continues."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.agents import running
from swarm.approvals.store import Approvals
from swarm.git.content.walk import walk
from swarm.git.errors import GitBusy
from swarm.kit import files
from swarm.kit.errors import Interrupted, SwarmError
from swarm.project import layout as places
from swarm.sessions.cleanup import in_boxes
from swarm.sessions.cleanup.cleanup_save import abandon
from swarm.sessions.errors import CleanupFailed
from swarm.sessions.reports import Removed, Skipped
from swarm.worktrees import hiding, pool, transaction, trash
from swarm.worktrees.errors import WorktreeExists
from swarm.worktrees.saved import aside, salvage
from swarm.worktrees.setup import setup_notes
from swarm.worktrees.steps import file_steps, inbox_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from swarm.project.model import Session
    from swarm.project.world import World


def remove_all(world: World, record: dict[str, Any]) -> tuple[Skipped, ...]:
    """Remove every target; return those that could not be removed.

    First all trees go, then all branches, then what swarm knows of the agents.
    """
    failures: list[Skipped] = []
    left: list[dict[str, Any]] = record["targets"]
    for item in left:
        world.progress(f"removing {item['session']}/{item['agent']}")
    left = _each(world, record, left, lambda item: _remove(world, record, item), failures)
    if _problem(lambda: _delete_branches(world, left)):
        # One of them stands in the way of all: by themselves it shows which.
        left = _each(world, record, left, lambda item: _delete_branches(world, [item]), failures)
    sessions = {name: world.sessions.get(name) for name in {item["session"] for item in left}}
    left = _each(world, record, left, lambda item: _forget(world, record, item, sessions[item["session"]]), failures)
    for name in dict.fromkeys(item["session"] for item in left):
        items = [item for item in left if item["session"] == name]
        if problem := _problem(functools.partial(_forget_agents, world, name, {item["agent"] for item in items})):
            failures += (Skipped(f"{name}/{item['agent']}", problem.message, problem.code) for item in items)
    return tuple(failures)


def _each(
    world: World,
    record: dict[str, Any],
    items: Sequence[dict[str, Any]],
    act: Callable[[dict[str, Any]], object],
    failures: list[Skipped],
) -> list[dict[str, Any]]:
    """Do something with each, once more where it fails; return those with which it was done."""
    done = []
    for item in items:
        todo = functools.partial(act, item)
        problem = _problem(todo)
        if problem is not None:
            # A git that was killed leaves its lock files; without them the same thing can be asked again.
            with suppress(GitBusy, OSError):
                transaction.clear_locks(world, record)
            problem = _problem(todo)
        if problem is not None:
            failures.append(Skipped(f"{item['session']}/{item['agent']}", problem.message, problem.code))
        else:
            done.append(item)
    return done


def _problem(act: Callable[[], object]) -> SwarmError | None:
    try:
        act()
    except Interrupted:
        raise
    except SwarmError as error:
        return error
    except OSError as error:
        return files.translate(error, "removing it")
    return None


def half_removed(world: World, record: dict[str, Any], failures: tuple[Skipped, ...]) -> bool:
    """Whether one that failed is partly gone: then the operation stays, and the next command goes on with it."""
    failed = {failure.name for failure in failures}
    items = [item for item in record["targets"] if f"{item['session']}/{item['agent']}" in failed]
    return any(files.exists(moved) for item in items for moved in _moved(world, record, item))


def give_up(world: World, record: dict[str, Any], failures: tuple[Skipped, ...]) -> dict[str, Any]:
    """Leave the worktrees that could not be removed as they were, and delete the entries saved for them."""
    failed = {failure.name for failure in failures}
    items = [item for item in record["targets"] if f"{item['session']}/{item['agent']}" in failed]
    if items:
        # First remove them from the operation: it must never remove unsaved work.
        record = {**record, "targets": [item for item in record["targets"] if item not in items]}
        world.journal.write(record["operation"], record)
    for item in items:
        salvage.forget_refs(world, item["session"], item["agent"], record["operation"])
    return record


def _moved(world: World, record: dict[str, Any], item: dict[str, Any]) -> tuple[Path, Path]:
    """Return where the tree and git's folder for it go on their way out."""
    name = pool.name_of(item)
    admin = world.layout.trash_folder(record["operation"]) / f"{name}.admin"
    return trash.find(world, record["operation"], f"{name}.tree"), admin


def _remove(world: World, record: dict[str, Any], item: dict[str, Any]) -> None:
    """Remove the files of one worktree. Each part looks whether an earlier try has done it."""
    if item["kind"] == "shared":
        files.make_folders(world.layout.trash_folder(record["operation"]), 0o700)  # for its empty inbox
        return
    tree = Path(item["tree"])
    admin = Path(item["admin"]) if item["admin"] else None
    moved_tree, moved_admin = _moved(world, record, item)
    files.make_folders(moved_tree.parent, 0o700)
    if item.get("link") and tree.is_symlink():
        files.unlink_if_there(tree)  # the link alone: its target is not ours
    if not files.exists(moved_tree) and files.exists(tree):
        if not _still_the_same(world, item, tree):
            raise WorktreeExists(f"something else is at its place now, and stays: {tree}", details=str(tree))
        moved_tree = trash.put(world, record["operation"], tree, moved_tree.name)
    if not (record["discard"] or _is_looked_at_later(world, record, item, moved_tree, admin)):
        _save_late(world, record, item, moved_tree, admin if admin and admin.is_dir() else None)
    if admin is not None and not files.exists(moved_admin) and _admin_is(admin, item):
        files.rename_if_there(admin, moved_admin)


def _still_the_same(world: World, item: dict[str, Any], tree: Path) -> bool:
    """Whether the path still holds the examined folder: check and removal must mean the same one."""
    if tree.is_symlink() or (tree / ".git").is_dir():
        return False
    pointer: str = item["pointer"]
    return str(world.git.pointer_of(tree) or "") == pointer


def _admin_is(admin: Path, item: dict[str, Any]) -> bool:
    """Whether git's admin folder still belongs to the examined worktree, or names no worktree at all."""
    said: str = item.get("gitdir", str(Path(item["tree"]) / ".git"))
    try:
        return os.fsdecode(files.read_small(admin / "gitdir", 1 << 16)).strip("\n") == said
    except OSError:
        return not said


def _is_looked_at_later(
    world: World, record: dict[str, Any], item: dict[str, Any], tree: Path, admin: Path | None
) -> bool:
    """Whether the second look at a tree is due when it is deleted; git's notes about it are compared now."""
    return (
        bool(item.get("later"))
        and tree.parent == world.layout.trash_folder(record["operation"])
        and (admin is None or not admin.is_dir() or world.trees.mark_of(admin) == item["notes"])
        and not (admin is not None and (admin / "modules").is_dir())
    )


def _save_late(world: World, record: dict[str, Any], item: dict[str, Any], tree: Path, admin: Path | None) -> None:
    """Move kept files out of the trash; or the whole folder, if it changed after the save."""
    folder = world.layout.salvage_folder(item["session"], item["agent"], record["operation"])
    if not files.exists(tree):
        if item["kind"] == "missing":  # the git folders of its submodules are there all the same
            aside.move_aside(tree, admin, folder, [])
        return
    started = (folder / "files").is_dir()
    changed = (
        bool(item["fingerprint"])
        and admin is not None
        and not started
        and (walk(tree).fingerprint, world.trees.mark_of(admin)) != (item["fingerprint"], item.get("notes"))
    )
    if changed and admin is not None:
        salvage.save_late(world, item, record["operation"], admin)
    if item["kind"] == "folder" or changed:
        aside.keep_whole(tree, admin, folder)
    else:
        aside.move_aside(tree, admin, folder, item["aside"])


def _delete_branches(world: World, items: Sequence[dict[str, Any]]) -> None:
    """Delete the branches that are where they were when they were saved; one that moved on holds more, and stays."""
    going = {places.HEADS + item["branch"]: item["tip"] for item in items if item["tip"] and not item["keep_branch"]}
    there = world.git.tips(*going) if going else {}
    world.git.change_refs(
        delete={ref: tip for ref, tip in going.items() if there.get(ref) == tip}, reason="swarm: cleanup"
    )


def _forget(world: World, record: dict[str, Any], item: dict[str, Any], session: Session | None) -> None:
    """Delete an agent's files, and git's configuration of a deleted branch; the record still lists the agent."""
    branch = item["branch"]
    configured = item["tip"] and not item["keep_branch"] and world.git.branch_config(branch)
    if configured and not world.git.tips(places.HEADS + branch):
        world.git.drop_branch_config(branch)  # also when an earlier try got no further than the branch
    gone = session.agent(item["agent"]) if session is not None else None
    if session is None or gone is None:
        return
    if gone.program:
        running.forget(world, session, gone)
    else:
        setup_notes.forget(world, session.name, gone.name)
    in_boxes.remove(world, record, item)
    folder = world.layout.salvage_folder(session.name, gone.name, record["operation"])
    away = world.layout.trash_folder(record["operation"])
    inbox_steps.retire(world, session, gone, folder, away, discard=record["discard"])
    with suppress(SwarmError, OSError):  # its old requests stop no cleanup
        Approvals(world.layout.approvals).forget(session.name, gone.name)


def _forget_agents(world: World, name: str, gone: Collection[str]) -> None:
    """Write a session's record without some agents; without any, it exists no more."""
    session = world.sessions.get(name)
    if session is None:
        return
    left = tuple(agent for agent in session.agents if agent.name not in gone)
    if left:
        world.sessions.write(session._replace(agents=left))
    else:
        world.sessions.forget(session.name)


def finish(world: World, record: dict[str, Any]) -> None:
    """Empty the trash, remove swarm's own folders if no session is left, and close the operation."""
    trash.empty_beside(world, record["operation"])
    if not world.sessions.names():
        file_steps.remove_base(world, world.layout.base)
        file_steps.remove_base(world, world.layout.subtrees)
        file_steps.show_again(world.git.common / "info" / "exclude")
        hiding.turn_off(world)
        if world.layout.sessions.is_dir():
            files.remove_empty(world.layout.sessions)
    if record.get("background"):
        transaction.close_early(world, record, "done")
    else:
        transaction.close(world, record, "done")


def told(world: World, record: dict[str, Any], summary: Sequence[Removed]) -> tuple[Removed, ...]:
    """Add the facts that only the removal showed: branches in use elsewhere or moved on, and folders kept whole."""
    names = [places.HEADS + item.branch for item in summary if item.branch]
    left = world.git.refs_around(names, places.OP_REFS.rstrip("/")) if names else ()
    return tuple(
        replace(
            item,
            branch_deleted=item.branch_deleted and places.HEADS + item.branch not in left,
            whole=files.exists(world.layout.salvage_folder(item.session, item.agent, record["operation"]) / "late"),
        )
        for item in summary
    )


def undeletable(world: World, record: dict[str, Any]) -> Iterable[str]:
    """Name the trash that stays: it holds files that only another user may delete."""
    if record["background"] or record["operation"] in world.journal.unfinished():
        return
    for folder in trash.stays(world, record["operation"]):
        yield f"{folder} could not be deleted: it holds files of another user; all its work is saved"


def remove_leftover(world: World, record: dict[str, Any]) -> tuple[str, ...]:
    """Save and delete the branches without a worktree; return their names."""
    for branch, tip in record["leftover"].items():
        salvage.save_branch(world, branch, tip, record["operation"])
    return tuple(record["leftover"])


def continue_cleanup(world: World, record: dict[str, Any]) -> str:
    """Finish an interrupted cleanup, or give it up where nothing is removed yet."""
    if record["phase"] == "save":
        abandon(world, record)
        return "rolled back"
    transaction.clear_locks(world, record)
    failures = remove_all(world, record)
    if half_removed(world, record, failures):
        lines = "; ".join(f"{f.name}: {f.reason}" for f in failures)
        raise CleanupFailed(f"could not finish an earlier cleanup: {lines}", failed=failures)
    remove_leftover(world, record)
    finish(world, give_up(world, record, failures))
    return "done"
