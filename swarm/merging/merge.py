"""Merge agents into a branch, all of them or none.

    look ──► refuse? ──► try it all in a quarantine ──► conflicts? ──► journal
         ──► copy the objects, under a ref ──► [checkout follows] ──► [branch moves] ══ merged ══► forget entry and ref

The branch is moved last, in one step.  Killed before that, the checkout is taken back to what it was;
killed after it, all is done already.  Local changes in the checkout are never touched: if one of them is in
the way, nothing is begun.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.callers import rights
from swarm.git.changes import Changes, Checkout
from swarm.git.errors import GitFailed
from swarm.git.plumbing import GITLINK
from swarm.kit import files as fsio
from swarm.kit.errors import SwarmError, told_of
from swarm.kit.words import count
from swarm.machine.processes import boot_id
from swarm.merging.conflicts import base_of, branch_tip
from swarm.merging.errors import MergeBlocked, NotCommitted, TargetNotFound
from swarm.merging.merge_request import Request, Work
from swarm.merging.trial import MOST_SHOWN, Landing
from swarm.merging.values import LocalWork, MergeReport
from swarm.project import layout as places
from swarm.project import targets
from swarm.project.layout import op_ref
from swarm.project.world import new_operation_id
from swarm.worktrees import transaction
from swarm.worktrees.errors import WorktreeNotFound, no_own_tree
from swarm.worktrees.examine import examine_all
from swarm.worktrees.reports import AgentRisks, Risk, RiskKind
from swarm.worktrees.saved.keeping import keep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from swarm.merging.quarantine import Quarantine
    from swarm.project.model import Agent, Session, WorktreeEntry
    from swarm.project.world import World
    from swarm.worktrees.examine import Target

#: Risks that a merge would leave out. Ignored files are not for merging, and live processes do not matter.
_WORK = frozenset(
    {
        *(RiskKind.MODIFIED, RiskKind.STAGED, RiskKind.UNTRACKED, RiskKind.HIDDEN, RiskKind.OPERATION),
        *(RiskKind.NESTED, RiskKind.SUBMODULE, RiskKind.IDENTITY, RiskKind.UNREADABLE),
    }
)


@dataclass(frozen=True, slots=True)
class _Plan:
    session: str
    report: MergeReport
    checkout: Checkout | None
    changes: Changes
    local: LocalWork


def preview(world: World, request: Request) -> MergeReport:
    """Return the plan of ``merge``, with the same refusals. Changes nothing."""
    with world.merging.quarantine() as box:
        return replace(_plan(world, box, request, sign=False).report, dry_run=True)


def merge(world: World, request: Request) -> MergeReport:
    """Merge. The caller holds the lock and has recovered.

    Raises:
        NotCommitted, MergeConflict, MergeBlocked, TargetNotFound, IdentityMissing: nothing was changed.
        SwarmError: everything was taken back.
    """
    record: dict[str, Any] | None = None
    try:
        with world.merging.quarantine() as box:
            plan = _plan(world, box, request, sign=world.merging.signs())
            if plan.report.new == plan.report.old:
                return plan.report
            record = _record(world, plan)
            _keep(world, box, plan.report, record)
        _move(world, plan, record)
    except BaseException as error:
        if record is not None:
            world.git.stop_all()
            world.git.resume()
            _settle(world, record, told_of(error))
        raise
    with contextlib.suppress(SwarmError, OSError):
        _close(world, record, "done", {op_ref(record["operation"]): plan.report.new})
    return plan.report


# --- look and refuse -----------------------------------------------------------------------------------


def _plan(world: World, box: Quarantine, request: Request, *, sign: bool) -> _Plan:
    world.git.require((2, 38), "merge")
    if request.nested:
        rights.check(world, "merge.nested", attempt="cannot take in nested repositories")
    session, agents = _choose(world, request)
    into, old = _target(world, request, session)
    rights.check(world, "merge", [(session, one) for one in agents])
    work, warnings = _branches(world, session, agents, into)
    warnings += _check_committed(world, request, work)
    checkout = _checkout(world, into)
    rights.check_branch(world, into, checkout.tree if checkout else None)
    world.progress("trying the merge")
    done, new = Landing(world, box, request.how, into, old, sign=sign).all(work)
    changes = box.changes(old, new)
    if not request.nested:
        _check_nested(changes, into)
    local = LocalWork(())
    if checkout is not None and new != old:
        local = world.merging.local_work(checkout, changes)
        _check_checkout(checkout, local, into)
    report = MergeReport(
        *(into, request.how, old, new, done),
        files=box.files(old, new),
        checkout=checkout.tree if checkout else None,
        warnings=warnings,
    )
    return _Plan(session.name, report, checkout, changes, local)


def _choose(world: World, request: Request) -> tuple[Session, tuple[Agent, ...]]:
    session, agent = targets.find(world, request.target)
    if agent is None:
        return session, tuple(one for one in session.agents if not one.shared)
    if agent.shared:
        raise no_own_tree(f"{agent.name}@{session.name}", agent.worktree)
    return session, (agent,)


def _target(world: World, request: Request, session: Session) -> tuple[str, str]:
    """Return the target branch and its tip."""
    if request.into is None:
        into, tip = base_of(world, session)
        if into == "HEAD" or not tip:
            raise TargetNotFound(
                f"session {session.name} started from {session.base_ref}, which is no branch",
                hint="name the branch to merge into with --into",
            )
        return into, branch_tip(world, into)
    into = request.into.removeprefix(places.HEADS)
    tip = branch_tip(world, into)
    if not tip:
        raise TargetNotFound(f"there is no branch {into}")
    return into, tip


def _branches(world: World, session: Session, agents: Sequence[Agent], into: str) -> tuple[list[Work], tuple[str, ...]]:
    found = []
    warnings = []
    for agent in agents:
        tip = branch_tip(world, agent.branch)
        if agent.branch == into:
            warnings.append(f"{agent.name}@{session.name} is the target of the merge")
        elif not tip:
            raise WorktreeNotFound(f"the branch {agent.branch} of {agent.name}@{session.name} is gone")
        else:
            found.append(Work(session, agent, tip))
    return found, tuple(warnings)


def _check_committed(world: World, request: Request, work: Sequence[Work]) -> tuple[str, ...]:
    """Refuse where an agent has more than its branch; or warn of it, if that was asked for."""
    targets = examine_all(world, [(one.session, one.agent) for one in work])
    found = []
    for one, target in zip(work, targets, strict=True):
        risks = (*(risk for risk in target.risks if risk.kind in _WORK), *_elsewhere(world, one, target))
        if risks:
            found.append(AgentRisks(one.session.name, one.agent.name, target.tree, risks))
    if found and not request.committed_only:
        listed = ", ".join(f"{item.agent}@{item.session}" for item in found)
        raise NotCommitted(f"nothing was merged: uncommitted work in {listed}", agents=tuple(found))
    return tuple(
        f"{item.agent}@{item.session} is merged without: {'; '.join(risk.text for risk in item.risks)}"
        for item in found
    )


def _elsewhere(world: World, one: Work, target: Target) -> Iterator[Risk]:
    """Commits in a worktree that has left its own branch."""
    state = target.state
    if state is None or not state.head or state.branch == one.agent.branch or state.operations:
        return
    if not world.git.is_ancestor(state.head, one.tip):
        place = f"branch {state.branch}" if state.branch else "a commit without a branch"
        yield Risk(RiskKind.IDENTITY, f"it is on {place}, with commits that {one.agent.branch} lacks", (state.head,))


def _linked(world: World) -> Sequence[WorktreeEntry]:
    """Return the worktrees but the main checkout; git is asked only where its plain files do not tell all."""
    admins = world.git.admin_dirs()
    known = []
    for admin in admins:
        tree = Path(os.path.dirname(admin.gitdir))
        entry = world.git.worktree(tree)
        if entry is not None and world.git.own_folder(tree) == admin.path:
            known.append(entry)
    return known if len(known) == len(admins) else world.git.worktrees()[1:]


def _checkout(world: World, branch: str) -> Checkout | None:
    """Return the working tree that has the target branch checked out.

    Raises:
        MergeBlocked: it cannot follow.
    """
    found = []
    if world.git.head_branch() == branch:
        found.append(Checkout(world.layout.root, world.git.common))
    for entry in _linked(world):
        if entry.branch != branch or not entry.path.is_dir():
            continue
        admin = world.git.admin_of(entry.path)
        # An agent can write into the notes that its worktree is a colleague's, or any folder of the user's.
        own = admin is not None and world.git.own_folder(entry.path) == admin.path
        if admin is None or not own or admin.head != f"ref: {places.HEADS}{branch}":
            raise MergeBlocked(f"cannot merge into {branch}: git's notes about its worktree {entry.path} are damaged")
        found.append(Checkout(entry.path, admin.path))
    busy = world.merging.busy(branch)
    operations = world.merging.operations(found[0]) if found else ()
    if busy or operations:
        where = f" in {found[0].tree}" if found and operations else ""
        raise MergeBlocked(
            f"cannot merge into {branch}: a {' and a '.join(operations) or busy} is in progress{where}",
            hint="finish or abort it there, then merge again",
        )
    if len(found) > 1:
        trees = ", ".join(str(one.tree) for one in found)
        raise MergeBlocked(f"cannot merge into {branch}: it is checked out twice, in {trees}")
    return found[0] if found else None


def _check_nested(changes: Changes, into: str) -> None:
    """Refuse nested repositories that the branch does not have.

    The user's git enters one as soon as it is there, and runs programs that its configuration names.
    """
    found = sorted(p for p, (mode, _) in changes.new.items() if mode == GITLINK and _mode(changes, p) != GITLINK)
    if found:
        shown = [*found[:MOST_SHOWN], *([f"and {len(found) - MOST_SHOWN} more"] if found[MOST_SHOWN:] else [])]
        raise MergeBlocked(
            f"cannot merge into {into}: it lacks {count(len(found), 'nested repository', 'nested repositories')} "
            "(gitlinks) of the agents",
            hint="look at them; you, not an agent, take them in with --with-nested",
            details="\n".join(shown),
            paths=tuple(found),
        )


def _mode(changes: Changes, path: str) -> str:
    return changes.old.get(path, ("", ""))[0]


def _check_checkout(checkout: Checkout, local: LocalWork, into: str) -> None:
    """Refuse where local work would have to be written over; git would too, but half way."""
    found = local.in_the_way
    if found:
        shown = [*found[:MOST_SHOWN], *([f"and {len(found) - MOST_SHOWN} more"] if found[MOST_SHOWN:] else [])]
        raise MergeBlocked(
            f"cannot merge into {into}: {checkout.tree} has local work in {len(found)} of the files that would change",
            details="\n".join(shown),
            paths=found,
        )


# --- do it ---------------------------------------------------------------------------------------------


def _keep(world: World, box: Quarantine, report: MergeReport, record: dict[str, Any]) -> None:
    """Write the operation down, and copy the merged commit into the repository, under a ref."""
    ref = {op_ref(record["operation"]): report.new}

    def write() -> dict[str, str]:
        box.keep(report.new, (report.old, *(one.tip for one in report.merged)))
        return ref

    world.journal.write(record["operation"], record)
    keep(world, write, f"swarm: merge {record['session']}", [report.old])


def _move(world: World, plan: _Plan, record: dict[str, Any]) -> None:
    """Let the checkout follow, then move the branch."""
    report, checkout = plan.report, plan.checkout
    record["phase"] = "move"
    world.journal.write(record["operation"], record)
    if checkout is not None:
        world.progress(f"updating {checkout.tree}")
        world.merging.move(checkout, report.old, report.new, plan.changes, plan.local)
    if world.settings.worktrees.durable:
        fsio.sync_filesystem(world.git.common)
        if checkout is not None:
            fsio.sync_filesystem(checkout.tree)
    world.merging.update_branch(checkout, report.into, report.old, report.new, f"swarm: merge {record['session']}")


def _settle(world: World, record: dict[str, Any], error: BaseException) -> None:
    """Roll back in this process; the next command does the part that fails now."""
    try:
        outcome = continue_merge(world, record)
    except Exception as second:  # noqa: BLE001  # the first error is what the user must see; this is added to it
        error.add_note(f"the rollback could not finish ({second}); the next swarm command does it")
        if isinstance(error, SwarmError):
            error.facts["rollback"] = f"unfinished: {second}"
        return
    if isinstance(error, SwarmError):
        if outcome == "done":
            error.message += " (the merge is complete and stays)"
        if notes := record.get("notes"):
            error.details = "\n".join([*([error.details] if error.details else []), *notes])


def _record(world: World, plan: _Plan) -> dict[str, Any]:
    report, checkout = plan.report, plan.checkout
    locks = list(world.git.ref_locks([places.HEADS + report.into]))
    if checkout is not None:
        locks += [checkout.gitdir / "index.lock", checkout.gitdir / "HEAD.lock"]
    return {
        "kind": "merge",
        "operation": new_operation_id(),
        "verb": "merge",
        "session": plan.session,
        "started_ns": time.time_ns(),
        "boot": boot_id(),
        "pid": os.getpid(),
        "phase": "keep",
        "branch": report.into,
        "old": report.old,
        "new": report.new,
        "tree": str(checkout.tree) if checkout else "",
        "gitdir": str(checkout.gitdir) if checkout else "",
        "before": world.merging.before(checkout, plan.changes, plan.local) if checkout else {},
        "locks": [str(lock) for lock in dict.fromkeys(locks) if not fsio.exists(lock)],
    }


def continue_merge(world: World, record: dict[str, Any]) -> str:
    """Bring a merge that was cut short to an end: the branch says whether it took place."""
    transaction.clear_locks(world, record)
    branch, old, new = record["branch"], record["old"], record["new"]
    tip = branch_tip(world, branch)
    if tip and (tip == new or _has(world, tip, new)):
        _close(world, record, "done")
        return "done"
    if record["tree"] and record.get("phase") != "keep":  # else nothing was touched
        checkout = Checkout(Path(record["tree"]), Path(record["gitdir"]))
        if _still_follows(world, checkout, branch):
            kept = world.merging.take_back(checkout, old, new, record["before"], tip)
            if kept:  # for the report
                record["notes"] = [f"{checkout.tree}: not restored, because it was edited meanwhile: {p}" for p in kept]
    _close(world, record, "rolled back")
    return "rolled back"


def _close(world: World, record: dict[str, Any], outcome: str, ref: Mapping[str, str] | None = None) -> None:
    """Forget the operation, and the ref that has kept its commit.

    Args:
        ref: with the object it is at, where that is known.
    """
    ref = ref or world.git.refs(op_ref(record["operation"]))
    for name, tip in ref.items():
        world.git.drop_ref(name, tip, reason="swarm: the merge is over")
    transaction.close(world, record, outcome)


def _has(world: World, tip: str, new: str) -> bool:
    with contextlib.suppress(GitFailed):
        return world.git.is_ancestor(new, tip)
    return False


def _still_follows(world: World, checkout: Checkout, branch: str) -> bool:
    """Whether the checkout is still on the branch; if not, the user has moved on."""
    if checkout.gitdir == world.git.common:
        return world.git.head_branch() == branch
    return any(entry.path == checkout.tree and entry.branch == branch for entry in world.git.worktrees())
