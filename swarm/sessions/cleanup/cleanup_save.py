"""Save the targets of a cleanup, and record that they may be removed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine.processes import boot_id
from swarm.project import layout as places
from swarm.project.world import new_operation_id
from swarm.sessions.reports import Removed
from swarm.worktrees import transaction
from swarm.worktrees.landing import landing_place
from swarm.worktrees.saved import salvage

if TYPE_CHECKING:
    from swarm.project.world import World
    from swarm.sessions.cleanup.cleanup_request import Request
    from swarm.worktrees.examine import Target


def save(
    world: World, request: Request, targets: tuple[Target, ...], leftover: dict[str, str]
) -> tuple[dict[str, Any], list[Removed]]:
    """Write the operation down, save everything, and write down that it may be removed now."""
    operation = new_operation_id()
    tips = world.git.refs(*(places.HEADS + t.agent.branch for t in targets)) if targets else {}
    record = _record(world, request, operation, targets, tips, leftover)
    summary: list[Removed] = []
    bases = world.git.objects([f"{target.agent.base}^{{commit}}" for target in targets])
    sessions = {target.session.name: target.session for target in targets}
    landing = {name: landing_place(world, session) for name, session in sessions.items()}
    try:
        world.journal.write(operation, record)
        for target, item in zip(targets, record["targets"], strict=True):
            world.progress(f"saving {name_of(target)}")
            base = bases.get(f"{target.agent.base}^{{commit}}", "")
            if not request.discard and not salvage.is_nothing(target, item["tip"]):
                salvage.save(world, target, operation, item["tip"], base)
            summary.append(_summary(world, request, target, item["tip"], operation, base, landing[target.session.name]))
        if targets and not request.discard and world.settings.worktrees.durable:
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


def _record(
    world: World,
    request: Request,
    operation: str,
    targets: tuple[Target, ...],
    tips: dict[str, str],
    leftover: dict[str, str],
) -> dict[str, Any]:
    busy = checked_out(world, targets)
    items = [
        {
            "session": t.session.name,
            "agent": t.agent.name,
            "tree": str(t.tree),
            "admin": str(t.admin.path) if t.admin else "",
            "gitdir": t.admin.gitdir if t.admin else "",
            "pointer": str(world.git.pointer_of(t.tree) or ""),
            "kind": t.kind,
            "link": t.link,
            "branch": t.agent.branch,
            "tip": tips.get(places.HEADS + t.agent.branch, ""),
            "keep_branch": request.keep_branches or t.agent.branch in busy,
            "fingerprint": t.state.fingerprint if t.state else "",
            "aside": list(t.aside),
        }
        for t in targets
    ]
    refs = [places.HEADS + t.agent.branch for t in targets] + [places.HEADS + branch for branch in leftover]
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
        "targets": items,
        "leftover": leftover,
        "locks": [str(lock) for lock in world.git.ref_locks(refs) if not files.exists(lock)],
    }


def checked_out(world: World, targets: tuple[Target, ...]) -> set[str]:
    """Return branches that are checked out in a worktree that stays: deleting them would break it."""
    going = {str(t.admin.path) for t in targets if t.admin}
    heads = [admin.head for admin in world.git.admin_dirs() if str(admin.path) not in going]
    with suppress(OSError):
        heads.append(os.fsdecode(files.read_small(world.git.common / "HEAD", 4096)).strip())
    return {head.removeprefix("ref: ").removeprefix(places.HEADS) for head in heads if head.startswith("ref: ")}


def _summary(
    world: World, request: Request, target: Target, tip: str, operation: str, base: str, landing: str
) -> Removed:
    """Summarize the removal of a target; *base* is empty when that commit is gone."""
    agent = target.agent
    known = bool(tip and base)
    landed = world.trees.landed([(tip, base)], landing)[0] if known else ""
    notes = []
    nothing = salvage.is_nothing(target, tip)
    if target.kind == "missing":
        notes.append("its folder was already gone")
    if nothing:
        notes.append("its folder and its branch were already gone: there was nothing to save")
    if request.discard and known and not landed and not request.keep_branches:
        notes.append(f"no branch holds its commits any more; before git deletes them: git branch {agent.branch} {tip}")
    if target.state is not None and target.state.special and not request.discard:
        notes.append("could not be saved: " + ", ".join(target.state.special))
    return Removed(
        *(target.session.name, agent.name, agent.role, target.tree, agent.branch),
        branch_deleted=bool(tip) and not request.keep_branches,
        head=target.state.head if target.state else tip,
        salvage="" if request.discard or nothing else f"{target.session.name}/{agent.name}@{operation}",
        landed=landed,
        commits=world.git.count(tip, base) if known and tip != base else 0,
        saved_files=0 if request.discard else len(work_files(target)),
        discarded=work_files(target) if request.discard else (),
        dropped=target.dropped,
        notes=tuple(notes),
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
    """Return what people call a target."""
    return f"{target.session.name}/{target.agent.name}"
