"""Remove worktrees without losing work.

    look ──► refuse? ──► [save] write salvage refs ──► [remove] move away, delete branches ──► forget
                            crash: take the refs back        crash: the next command goes on

Until every salvage ref is on the disk nothing is removed, and from then on the operation only goes
forward, so that "half cleaned up" is a state that heals itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.agents import running, view
from swarm.approvals.store import Approvals
from swarm.callers import rights
from swarm.git.errors import GitBusy
from swarm.kit import files
from swarm.kit.errors import Interrupted, SwarmError, raise_all
from swarm.project import layout as places
from swarm.project.model import AgentRisks, CleanupReport, Removed, Skipped
from swarm.project.world import new_operation_id, no_session
from swarm.sessions import refusal
from swarm.sessions.errors import CleanupFailed
from swarm.worktrees import hiding, inbox_steps, salvage, setup_notes, steps, transaction, trash
from swarm.worktrees.errors import WorktreeExists
from swarm.worktrees.examine import Target, examine_all
from swarm.worktrees.landing import landing_place
from swarm.worktrees.teardown import Teardowns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role


@dataclass(frozen=True, slots=True)
class Request:
    """What to remove.

    Attributes:
        agents: (session, agent) pairs, instead of whole sessions.
        everything: all sessions, and swarm's branches without a worktree.
        older_than_ms: only sessions of at least this age; what is at risk is skipped then.
        only_missing: only agents whose folder is gone.
        role: how the role of an agent is found, for its teardown; None runs no teardown.
        verb: what `swarm log` calls it.
    """

    sessions: tuple[str, ...] = ()
    agents: tuple[tuple[str, str], ...] = ()
    everything: bool = False
    force: bool = False
    discard: bool = False
    keep_branches: bool = False
    older_than_ms: int | None = None
    only_missing: bool = False
    role: Callable[[Session, str], Role] | None = None
    verb: str = "cleanup"


def preview(world: World, request: Request) -> CleanupReport:
    """Say what ``cleanup`` would do; refuses what it would refuse. Changes nothing."""
    chosen, skipped = _choose(world, request)
    go, more = _decide(world, request, chosen)
    left = leftover_branches(world, {agent.branch for t in chosen for agent in (t.agent,)}) if _all(request) else {}
    ends = Teardowns(world, go, request.role)
    removed = tuple(
        Removed(
            *(t.session.name, t.agent.name, t.agent.role, t.tree, t.agent.branch),
            branch_deleted=not request.keep_branches,
            head=t.state.head if t.state else "",
            saved_files=0 if request.discard else len(_work_files(t)),
            discarded=_work_files(t) if request.discard else (),
            dropped=t.dropped,
            notes=tuple(f"would run `{line}` first" for line in ends.lines(t.session.name, t.agent.name)),
        )
        for t in go
    )
    return CleanupReport(
        removed=removed,
        skipped=(*skipped, *more),
        branches=() if request.keep_branches else tuple(left),
        sessions=_whole_sessions(go),
        dry_run=True,
    )


def cleanup(world: World, request: Request) -> CleanupReport:
    """Remove what was asked for. The caller holds the lock and has recovered.

    Raises:
        WorkAtRisk: nothing was removed.
        CleanupFailed: some could not be removed; the rest is.
    """
    chosen, skipped = _choose(world, request)
    go, more = _decide(world, request, chosen)
    ended = _end_programs(world, go)
    ends = Teardowns(world, go, request.role)
    if ends.run() or ended:  # what they wrote while they ended must be seen too
        chosen, skipped = _choose(world, request)
        go, more = _decide(world, request, chosen)
    ends.end_servers()
    going = {target.agent.branch for target in go}
    leftover = leftover_branches(world, going) if _all(request) and not request.keep_branches else {}
    record, summary = _save(world, request, go, leftover)
    try:
        failures = _remove_all(world, record)
        branches = _remove_leftover(world, record)
    except Interrupted as error:
        error.message += " (everything is saved; the next swarm command finishes the removal)"
        raise
    if not _half_removed(world, record, failures):
        _finish(world, _give_up(world, record, failures))
    failed = {(f.name): f for f in failures}
    removed = _told(world, record, [item for item in summary if f"{item.session}/{item.agent}" not in failed])
    report = CleanupReport(
        removed=removed,
        skipped=(*skipped, *more, *failures),
        branches=branches,
        sessions=tuple(name for name in _whole_sessions(go) if world.sessions.get(name) is None),
        warnings=(*ends.warnings, *_undeletable(world, record), *(_strays(world) if _all(request) else ())),
    )
    if failures:
        lines = "; ".join(f"{f.name}: {f.reason}" for f in failures)
        raise CleanupFailed(f"could not remove everything: {lines}", failed=failures, report=report)
    return report


def _end_programs(world: World, targets: tuple[Target, ...]) -> bool:
    """End the agents that still run in what is going to be removed; say whether there were any."""
    sessions = {t.session.name: t.session for t in targets if t.agent.program}
    ended = False
    for session in sessions.values():
        wanted = {t.agent.name for t in targets if t.session.name == session.name}
        live = [agent for agent in view.live_agents(world, session) if agent.name in wanted]
        if live:
            running.stop(world, session, live)
            ended = True
    return ended


def _all(request: Request) -> bool:
    return request.everything and request.older_than_ms is None


# --- choose and refuse ----------------------------------------------------------------------------


def _choose(world: World, request: Request) -> tuple[tuple[Target, ...], tuple[Skipped, ...]]:
    if request.discard:
        rights.check(world, "cleanup.discard", attempt="cannot discard work")
    if _all(request):
        rights.check_others(world, "cleanup", "cannot clean up everything")
    sessions = _sessions(world, request)
    skipped: list[Skipped] = []
    pairs: list[tuple[Session, Agent]] = []
    now = world.host.now_ns() // 1_000_000
    for session in sessions:
        age = now - session.created_ms if session.created_ms > 0 else -1
        if request.older_than_ms is not None and age < request.older_than_ms:
            skipped.append(Skipped(session.name, "younger than asked for" if age >= 0 else "its age is unknown"))
            continue
        pairs += [(session, agent) for agent in session.agents if _wanted(world, request, session, agent)]
    rights.check(world, "cleanup", pairs, attempt="cannot clean up")
    return examine_all(world, pairs), tuple(skipped)


def _sessions(world: World, request: Request) -> tuple[Session, ...]:
    if request.everything or request.only_missing or (request.older_than_ms is not None and not request.sessions):
        return world.sessions.all()
    wanted = dict.fromkeys((*request.sessions, *(session for session, _ in request.agents)))
    found = {name: world.sessions.get(name) for name in wanted}
    raise_all("cannot clean up", [no_session(world, name) for name, s in found.items() if s is None])
    unique = {session.name: session for session in found.values() if session is not None}
    return tuple(unique.values())


def _wanted(world: World, request: Request, session: Session, agent: Agent) -> bool:
    if request.agents and (session.name, agent.name) not in request.agents:
        return False
    return not request.only_missing or not files.exists(world.layout.root / agent.worktree)


def _decide(
    world: World, request: Request, chosen: tuple[Target, ...]
) -> tuple[tuple[Target, ...], tuple[Skipped, ...]]:
    """Split into what is removed and what is left alone; refuse where that was not expected."""
    unsafe = [Skipped(_name(t), "; ".join(filter(None, (t.unsafe, t.way_out))), "IDENTITY") for t in chosen if t.unsafe]
    safe = tuple(t for t in chosen if not t.unsafe)
    at_risk = [t for t in safe if t.risks]
    if unsafe and not safe:
        first = next(t for t in chosen if t.unsafe)
        message = f"cannot remove {_name(first)}: {first.unsafe}"
        raise CleanupFailed(message, hint=first.way_out or None, failed=tuple(unsafe))
    if not at_risk or request.force:
        return safe, tuple(unsafe)
    if request.older_than_ms is not None:
        skipped = [Skipped(_name(t), "; ".join(risk.text for risk in t.risks), "WORK_AT_RISK") for t in at_risk]
        return tuple(t for t in safe if not t.risks), (*unsafe, *skipped)
    agents = tuple(AgentRisks(t.session.name, t.agent.name, t.tree, t.risks) for t in at_risk)
    raise refusal.at_risk(agents, discard=request.discard, whole=not request.agents, running=_running(world, at_risk))


def _running(world: World, targets: list[Target]) -> set[tuple[str, str]]:
    """Return whose own program runs."""
    sessions = {t.session.name: t.session for t in targets if t.agent.program}
    return {(name, agent.name) for name, session in sessions.items() for agent in view.live_agents(world, session)}


def _name(target: Target) -> str:
    return f"{target.session.name}/{target.agent.name}"


def _whole_sessions(targets: Iterable[Target]) -> tuple[str, ...]:
    count: dict[str, int] = {}
    size: dict[str, int] = {}
    for target in targets:
        count[target.session.name] = count.get(target.session.name, 0) + 1
        size[target.session.name] = len(target.session.agents)
    return tuple(name for name, n in count.items() if n == size[name])


# --- save -----------------------------------------------------------------------------------------


def _save(
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
            world.progress(f"saving {_name(target)}")
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
            # any more when the first salvage ref goes: else a crash right then would remove what is not saved.
            world.journal.write(operation, record)
            _abandon(world, record)
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
    busy = _checked_out(world, targets)
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
        "started_ns": world.host.now_ns(),
        "boot": world.host.boot_id(),
        "pid": os.getpid(),
        "phase": "save",
        "discard": request.discard,
        "targets": items,
        "leftover": leftover,
        "locks": [str(lock) for lock in world.git.ref_locks(refs) if not files.exists(lock)],
    }


def _checked_out(world: World, targets: tuple[Target, ...]) -> set[str]:
    """Return branches that are checked out in a worktree that stays: deleting them would break it."""
    going = {str(t.admin.path) for t in targets if t.admin}
    heads = [admin.head for admin in world.git.admin_dirs() if str(admin.path) not in going]
    with suppress(OSError):
        heads.append(os.fsdecode(files.read_small(world.git.common / "HEAD", 4096)).strip())
    return {head.removeprefix("ref: ").removeprefix(places.HEADS) for head in heads if head.startswith("ref: ")}


def _summary(
    world: World, request: Request, target: Target, tip: str, operation: str, base: str, landing: str
) -> Removed:
    """Say what is removed of a target; *base* is empty when that commit is gone."""
    agent = target.agent
    known = bool(tip and base)
    landed = world.trees.landed(tip, base, landing) if known else ""
    notes = []
    nothing = salvage.is_nothing(target, tip)
    if target.kind == "missing":
        notes.append("its folder was already gone")
    if nothing:
        notes.append("its folder and its branch were already gone: there was nothing to save")
    if request.discard and known and not landed and not request.keep_branches:
        notes.append(f"its commits are on no branch any more; until git forgets them: git branch {agent.branch} {tip}")
    if target.state is not None and target.state.special and not request.discard:
        notes.append("could not be saved: " + ", ".join(target.state.special))
    return Removed(
        *(target.session.name, agent.name, agent.role, target.tree, agent.branch),
        branch_deleted=bool(tip) and not request.keep_branches,
        head=target.state.head if target.state else tip,
        salvage="" if request.discard or nothing else f"{target.session.name}/{agent.name}@{operation}",
        landed=landed,
        commits=world.git.count(tip, base) if known and tip != base else 0,
        saved_files=0 if request.discard else len(_work_files(target)),
        discarded=_work_files(target) if request.discard else (),
        dropped=target.dropped,
        notes=tuple(notes),
    )


def _work_files(target: Target) -> tuple[str, ...]:
    """Return the files and folders that are saved because they are work; more may be, to be on the safe side."""
    state = target.state
    if state is None:
        return tuple(sorted({*target.keep, *target.aside}))
    gone = {*state.deleted, *target.aside, *target.untouched}
    changed = {*state.modified, *state.hidden, *state.unmerged, *target.keep} - gone
    return tuple(sorted({*changed, *state.staged, *target.aside} - set(target.untouched)))


# --- remove ---------------------------------------------------------------------------------------


def _remove_all(world: World, record: dict[str, Any]) -> tuple[Skipped, ...]:
    failures = []
    for item in record["targets"]:
        world.progress(f"removing {item['session']}/{item['agent']}")
        problem = _try_to_remove(world, record, item)
        if problem is not None:
            # A git that was killed leaves its lock files; without them the same thing can be asked again.
            with suppress(GitBusy, OSError):
                transaction.clear_locks(world, record)
            problem = _try_to_remove(world, record, item)
        if problem is not None:
            failures.append(Skipped(f"{item['session']}/{item['agent']}", problem.message, problem.code))
    return tuple(failures)


def _try_to_remove(world: World, record: dict[str, Any], item: dict[str, Any]) -> SwarmError | None:
    try:
        _remove(world, record, item)
    except Interrupted:
        raise
    except SwarmError as error:
        return error
    except OSError as error:
        return files.translate(error, "removing it")
    return None


def _half_removed(world: World, record: dict[str, Any], failures: tuple[Skipped, ...]) -> bool:
    """Whether one that failed is partly gone: then the operation stays, and the next command goes on with it."""
    failed = {failure.name for failure in failures}
    items = [item for item in record["targets"] if f"{item['session']}/{item['agent']}" in failed]
    return any(files.exists(moved) for item in items for moved in _moved(world, record, item))


def _give_up(world: World, record: dict[str, Any], failures: tuple[Skipped, ...]) -> dict[str, Any]:
    """Leave what could not be removed as it was, also without the entries it was saved under."""
    failed = {failure.name for failure in failures}
    items = [item for item in record["targets"] if f"{item['session']}/{item['agent']}" in failed]
    if items:
        # First they are taken out of the operation: what is not saved any more must never be removed by it.
        record = {**record, "targets": [item for item in record["targets"] if item not in items]}
        world.journal.write(record["operation"], record)
    for item in items:
        salvage.forget_refs(world, item["session"], item["agent"], record["operation"])
    return record


def _moved(world: World, record: dict[str, Any], item: dict[str, Any]) -> tuple[Path, Path]:
    """Return where the tree and git's folder for it go on their way out."""
    name = f"{item['agent']}-{item['session']}"
    admin = world.layout.trash_folder(record["operation"]) / f"{name}.admin"
    return trash.find(world, record["operation"], f"{name}.tree"), admin


def _remove(world: World, record: dict[str, Any], item: dict[str, Any]) -> None:
    """Remove one worktree. Each part looks whether an earlier try has done it."""
    tree = Path(item["tree"])
    admin = Path(item["admin"]) if item["admin"] else None
    moved_tree, moved_admin = _moved(world, record, item)
    files.make_folders(moved_tree.parent, 0o700)
    if item.get("link") and tree.is_symlink():
        files.unlink_if_there(tree)  # the link alone: what it leads to is not ours
    if not files.exists(moved_tree) and files.exists(tree):
        if not _still_the_same(world, item, tree):
            raise WorktreeExists(f"something else is at its place now, and stays: {tree}", details=str(tree))
        moved_tree = trash.put(world, record["operation"], tree, moved_tree.name)
    if not record["discard"]:
        _save_late(world, record, item, moved_tree, admin if admin and admin.is_dir() else None)
    if admin is not None and not files.exists(moved_admin) and _admin_is(admin, item):
        files.rename_if_there(admin, moved_admin)
    _delete_branch(world, item)
    _forget_agent(world, record, item)


def _still_the_same(world: World, item: dict[str, Any], tree: Path) -> bool:
    """Whether the path still holds what was looked at: check and removal must mean the same thing."""
    if tree.is_symlink() or (tree / ".git").is_dir():
        return False
    pointer: str = item["pointer"]
    return str(world.git.pointer_of(tree) or "") == pointer


def _admin_is(admin: Path, item: dict[str, Any]) -> bool:
    """Whether git's folder is still for what was looked at; nobody else has it when it does not say for what it is."""
    said: str = item.get("gitdir", str(Path(item["tree"]) / ".git"))
    try:
        return os.fsdecode(files.read_small(admin / "gitdir", 1 << 16)).strip("\n") == said
    except OSError:
        return not said


def _save_late(world: World, record: dict[str, Any], item: dict[str, Any], tree: Path, admin: Path | None) -> None:
    """Move what is kept out of the trash; and all of it, if it changed after it was saved."""
    folder = world.layout.salvage_folder(item["session"], item["agent"], record["operation"])
    if not files.exists(tree):
        if item["kind"] == "missing":  # the git folders of its submodules are there all the same
            salvage.move_aside(tree, admin, folder, [])
        return
    started = (folder / "files").is_dir()
    changed = (
        bool(item["fingerprint"])
        and admin is not None
        and not started
        and (world.trees.fingerprint(tree, admin) != item["fingerprint"])
    )
    if changed and admin is not None:
        salvage.save_late(world, item, record["operation"], admin)
    if item["kind"] == "folder" or changed:
        salvage.keep_whole(tree, admin, folder)
    else:
        salvage.move_aside(tree, admin, folder, item["aside"])


def _delete_branch(world: World, item: dict[str, Any]) -> None:
    ref = places.HEADS + item["branch"]
    if item["keep_branch"] or not item["tip"]:
        return
    there = world.git.tips(ref).get(ref)
    if there is not None and there == item["tip"]:
        world.git.change_refs(delete={ref: there}, reason="swarm: cleanup")
    elif there is not None:
        return  # moved on since: then it holds more than was saved, and stays
    world.git.drop_branch_config(item["branch"])  # also when an earlier try got no further than the branch


def _forget_agent(world: World, record: dict[str, Any], item: dict[str, Any]) -> None:
    session = world.sessions.get(item["session"])
    if session is None:
        return
    left = tuple(agent for agent in session.agents if agent.name != item["agent"])
    gone = session.agent(item["agent"])
    if gone is not None and gone.program:
        running.forget(world, session, gone)
    elif gone is not None:
        setup_notes.forget(world, session.name, gone.name)
    if gone is not None:
        folder = world.layout.salvage_folder(session.name, gone.name, record["operation"])
        aside = world.layout.trash_folder(record["operation"])
        inbox_steps.retire(world, session, gone, folder, aside, discard=record["discard"])
        with suppress(SwarmError, OSError):  # what it once asked stops no cleanup
            Approvals(world.layout.approvals).forget(session.name, gone.name)
    if left:
        world.sessions.write(replace(session, agents=left))
    else:
        world.sessions.forget(session.name)


def _finish(world: World, record: dict[str, Any]) -> None:
    trash.empty_beside(world, record["operation"])
    if not world.sessions.names():
        steps.remove_base(world, world.layout.base)
        steps.show_again(world.git.common / "info" / "exclude")
        hiding.turn_off(world)
        if world.layout.sessions.is_dir():
            files.remove_empty(world.layout.sessions)
    transaction.close(world, record, "done")


def _told(world: World, record: dict[str, Any], summary: Sequence[Removed]) -> tuple[Removed, ...]:
    """Add what only the removal showed: a branch stays that is in use elsewhere, or moved on; what is kept whole."""
    left = world.git.refs(*(places.HEADS + item.branch for item in summary)) if summary else {}
    return tuple(
        replace(
            item,
            branch_deleted=item.branch_deleted and places.HEADS + item.branch not in left,
            whole=files.exists(world.layout.salvage_folder(item.session, item.agent, record["operation"]) / "late"),
        )
        for item in summary
    )


def _undeletable(world: World, record: dict[str, Any]) -> Iterable[str]:
    """Name the trash that stays: it holds files that only another user may delete."""
    if record["operation"] in world.journal.unfinished():
        return
    for folder in trash.stays(world, record["operation"]):
        yield f"{folder} could not be deleted: it holds files of another user; everything of it that counts is saved"


def _strays(world: World) -> Iterable[str]:
    """Name what is left in the folder of the worktrees and is not swarm's."""
    known = {Path(agent.worktree).name for session in world.sessions.all() for agent in session.agents}
    for name in sorted(os.listdir(world.layout.base)) if world.layout.base.is_dir() else ():
        if name not in {".gitignore", places.TRASH_BESIDE} and name not in known:
            yield f"{world.layout.base / name} is in no session and stays; see `swarm worktree list`"


# --- branches without a worktree ------------------------------------------------------------------


def leftover_branches(world: World, going: AbstractSet[str] = frozenset()) -> dict[str, str]:
    """Return swarm's own branches that no agent and no worktree has: name → tip."""
    prefix = world.settings.worktrees.branch_prefix
    used = {agent.branch for session in world.sessions.all() for agent in session.agents} | going
    used |= _checked_out(world, ())
    found = {ref.removeprefix(places.HEADS): oid for ref, oid in world.git.refs(f"{places.HEADS}{prefix}/").items()}
    return {
        branch: tip
        for branch, tip in found.items()
        # The branch's own log tells who made it; its name alone would prove nothing.
        if branch not in used and world.git.first_reflog_message(branch).startswith("swarm: ")
    }


def _remove_leftover(world: World, record: dict[str, Any]) -> tuple[str, ...]:
    for branch, tip in record["leftover"].items():
        salvage.save_branch(world, branch, tip, record["operation"])
    return tuple(record["leftover"])


def sweep_branches(world: World) -> tuple[str, ...]:
    """Delete swarm's branches that have no worktree, each saved first; return their names."""
    rights.check_others(world, "cleanup_swarm_branches", "cannot clean up branches")
    record, _ = _save(world, Request(), (), leftover_branches(world, set()))
    removed = _remove_leftover(world, record)
    _finish(world, record)
    return removed


# --- after a crash --------------------------------------------------------------------------------


def _abandon(world: World, record: dict[str, Any]) -> None:
    """Take back the saving: the trees are untouched, so the half-written entries are of no use."""
    transaction.clear_locks(world, record)
    for item in record["targets"]:
        salvage.forget_refs(world, item["session"], item["agent"], record["operation"])
    transaction.close(world, record)


def _continue(world: World, record: dict[str, Any]) -> str:
    if record["phase"] == "save":
        _abandon(world, record)
        return "rolled back"
    transaction.clear_locks(world, record)
    failures = _remove_all(world, record)
    if _half_removed(world, record, failures):
        lines = "; ".join(f"{f.name}: {f.reason}" for f in failures)
        raise CleanupFailed(f"could not finish an earlier cleanup: {lines}", failed=failures)
    _remove_leftover(world, record)
    _finish(world, _give_up(world, record, failures))
    return "done"


transaction.recovers("cleanup", _continue)
