"""Save the targets of a cleanup, and record that they may be removed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine.processes import boot_id
from swarm.project import layout as places
from swarm.project.world import new_operation_id
from swarm.sessions.cleanup import in_boxes
from swarm.sessions.reports import Removed
from swarm.worktrees import parking, transaction
from swarm.worktrees.landing import landing_place
from swarm.worktrees.saved import salvage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.git.history import Landed
    from swarm.project.world import World
    from swarm.sessions.cleanup.cleanup_request import Request
    from swarm.worktrees.examine import Target


class _Item(NamedTuple):
    """A target, where its branch is (empty when it is gone), and where it began (empty when that is gone)."""

    target: Target
    tip: str
    base: str


def save(
    world: World, request: Request, targets: tuple[Target, ...], leftover: dict[str, str]
) -> tuple[dict[str, Any], list[Removed]]:
    """Write the operation down, save everything, and write down that it may be removed now."""
    operation = new_operation_id()
    tips = _tips(world, targets)
    record = _record(world, request, operation, targets, tips, leftover)
    begun = [f"{target.agent.base}^{{commit}}" for target in targets if target.agent.base]
    bases = world.git.objects(begun) if begun else {}
    items = [
        _Item(target, item["tip"], bases.get(f"{target.agent.base}^{{commit}}", ""))
        for target, item in zip(targets, record["targets"], strict=True)
    ]
    landed = _landed(world, items)
    try:
        world.journal.write(operation, record)
        saving = [] if request.discard else [one for one in items if not salvage.is_nothing(one.target, one.tip)]
        for one in saving:
            world.progress(f"saving {name_of(one.target)}")
        salvage.save(world, operation, saving)
        if not request.discard:
            in_boxes.save(world, operation, [one.target for one in items if in_boxes.has_box(world, one.target)])
        summary = [_summary(request, one, operation, landed.get(name_of(one.target))) for one in items]
        if saving and not request.discard and world.settings.worktrees.durable:
            files.sync_filesystem(world.git.common)
        removing = {**record, "phase": "remove"}
        world.journal.write(operation, removing)
    except BaseException:
        world.git.stop_all()
        world.git.resume()
        with suppress(SwarmError, OSError):
            # The journal may say "remove" already, and only the sync of that failed. It must not say so
            # any more when the first salvage ref goes: else a crash right then would remove unsaved work.
            world.journal.write(operation, record)
            abandon(world, record)
        raise
    return removing, summary


def _tips(world: World, targets: tuple[Target, ...]) -> dict[str, str]:
    """Return where the agents' branches are; some agents have none."""
    refs = [places.HEADS + t.agent.branch for t in targets if t.agent.branch]
    return world.git.tips(*refs) if refs else {}


def _record(
    world: World,
    request: Request,
    operation: str,
    targets: tuple[Target, ...],
    tips: dict[str, str],
    leftover: dict[str, str],
) -> dict[str, Any]:
    busy = checked_out(world, targets)
    background = world.settings.cleanup.background and not any(map(_is_for_another_user, targets))
    parks = not (request.discard or request.everything)
    items = [
        {
            **_item(world, t),
            "tip": tips.get(places.HEADS + t.agent.branch, "") if t.agent.branch else "",
            "keep_branch": request.keep_branches or t.agent.branch in busy,
            "later": background and _is_ordinary(t) and not request.discard,
            "park": parking.wish(world, t) if background and parks and _is_ordinary(t) else None,
        }
        for t in targets
    ]
    refs = [places.HEADS + t.agent.branch for t in targets if t.agent.branch] + [
        places.HEADS + branch for branch in leftover
    ]
    return {
        "kind": "cleanup",
        "operation": operation,
        "verb": request.verb,
        "session": ",".join(dict.fromkeys(t.session.name for t in targets)),
        "started_ns": time.time_ns(),
        "boot": boot_id(),
        "pid": os.getpid(),
        "phase": "save",
        "discard": request.discard,
        "background": background,
        "pool": {"most": world.settings.worktrees.pool, "size": world.settings.worktrees.pool_size},
        "targets": items,
        "leftover": leftover,
        "locks": [str(lock) for lock in world.git.ref_locks(refs) if not files.exists(lock)],
    }


def _item(world: World, target: Target) -> dict[str, Any]:
    """Return what the record says of one agent, whatever is asked for."""
    shared = target.agent.shared
    return {
        "session": target.session.name,
        "agent": target.agent.name,
        "tree": "" if shared else str(target.tree),  # what is not in the record can never be removed
        "admin": str(target.admin.path) if target.admin else "",
        "gitdir": target.admin.gitdir if target.admin else "",
        "pointer": "" if shared else str(world.git.pointer_of(target.tree) or ""),
        "kind": target.kind,
        "link": target.link,
        "branch": target.agent.branch,
        "fingerprint": target.state.fingerprint if target.state else "",
        "notes": target.state.notes if target.state else "",
        "aside": list(target.aside),
    }


def _is_ordinary(target: Target) -> bool:
    """Whether nothing of a tree is moved into the salvage, so that it is as it was looked at until it is deleted."""
    return target.kind == "worktree" and target.state is not None and bool(target.state.rest) and not target.aside


def _is_for_another_user(target: Target) -> bool:
    """Whether a tree may hold files that only another user can delete, as the command that removes it reports."""
    found = target.state.found if target.state else None
    if target.kind in ("missing", "gone"):
        return False
    return found is None or bool(found.unreadable) or not found.owners <= {os.geteuid()}


def checked_out(world: World, targets: tuple[Target, ...]) -> set[str]:
    """Return branches that are checked out in a worktree that stays: deleting them would break it."""
    going = {str(t.admin.path) for t in targets if t.admin}
    heads = [admin.head for admin in world.git.admin_dirs() if str(admin.path) not in going]
    with suppress(OSError):
        heads.append(os.fsdecode(files.read_small(world.git.common / "HEAD", 4096)).strip())
    return {head.removeprefix("ref: ").removeprefix(places.HEADS) for head in heads if head.startswith("ref: ")}


def _landed(world: World, items: Sequence[_Item]) -> dict[str, Landed]:
    """Return how the work of the targets has landed, where that is known."""
    found: dict[str, Landed] = {}
    for session in {one.target.session.name: one.target.session for one in items}.values():
        known = [one for one in items if one.target.session.name == session.name and one.tip and one.base]
        if known:
            place = landing_place(world, session)
            names = (name_of(one.target) for one in known)
            found |= zip(names, world.trees.landed([(one.tip, one.base) for one in known], place), strict=True)
    return found


def _summary(request: Request, item: _Item, operation: str, landed: Landed | None) -> Removed:
    """Summarize the removal of a target; *landed* is None when that is unknown."""
    target, tip, _ = item
    agent = target.agent
    notes = []
    nothing = salvage.is_nothing(target, tip)
    if target.kind == "missing":
        notes.append("its folder was already gone")
    if agent.shared:
        notes.append("its folder is not its own, and stays as it is")
    elif nothing:
        notes.append("its folder and its branch were already gone: there was nothing to save")
    if request.discard and landed and not landed.how and not request.keep_branches:
        notes.append(f"no branch holds its commits any more; before git deletes them: git branch {agent.branch} {tip}")
    if target.state is not None and target.state.special and not request.discard:
        notes.append("could not be saved: " + ", ".join(target.state.special))
    return Removed(
        *(target.session.name, agent.name, agent.role, target.tree, agent.branch),
        branch_deleted=bool(tip) and not request.keep_branches,
        head=target.state.head if target.state else tip,
        salvage="" if request.discard or nothing else f"{target.session.name}/{agent.name}@{operation}",
        landed=landed.how if landed else "",
        commits=landed.commits if landed else 0,
        saved_files=0 if request.discard else len(work_files(target)),
        discarded=work_files(target) if request.discard else (),
        dropped=target.dropped,
        notes=tuple(notes),
        shared=agent.shared,
    )


def work_files(target: Target) -> tuple[str, ...]:
    """Return the files and folders that are saved because they are work; more may be, to be on the safe side."""
    state = target.state
    if state is None:
        return tuple(sorted({*target.keep, *target.aside}))
    gone = {*state.deleted, *target.aside, *target.untouched}
    changed = {*state.modified, *state.hidden, *state.unmerged, *target.keep} - gone
    return tuple(sorted({*changed, *state.staged, *target.aside} - set(target.untouched)))


def abandon(world: World, record: dict[str, Any]) -> None:
    """Take back the saving: the trees are untouched, so the half-written entries are of no use."""
    transaction.clear_locks(world, record)
    for item in record["targets"]:
        salvage.forget_refs(world, item["session"], item["agent"], record["operation"])
    transaction.close(world, record)


def name_of(target: Target) -> str:
    """Return a target's name, as users write it."""
    return f"{target.session.name}/{target.agent.name}"
