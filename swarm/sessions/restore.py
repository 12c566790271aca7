"""Restore saved work: branch, files, index, operations in progress.

A restore is a create whose files come from a salvage entry; the same transaction makes it all or
nothing.  The entry itself stays until the user drops it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.callers import rights
from swarm.git.errors import BranchExists
from swarm.kit import files
from swarm.kit.errors import SwarmError, raise_all
from swarm.machine.processes import boot_id
from swarm.project import codec
from swarm.project import layout as places
from swarm.project.model import TEAM, Session, WorktreeEntry
from swarm.project.world import new_operation_id
from swarm.sandbox import steps as box_steps
from swarm.sessions.create import create_checks, name_checks
from swarm.sessions.errors import RestoreConflict
from swarm.sessions.reports import CreatedAgent, RestoreReport
from swarm.worktrees import hiding, transaction
from swarm.worktrees.errors import WorktreeExists
from swarm.worktrees.saved import salvage
from swarm.worktrees.setup import ports, setup
from swarm.worktrees.steps import branch_steps, file_steps, inbox_steps, tree_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.project.world import World
    from swarm.worktrees.reports import SalvageEntry
    from swarm.worktrees.steps.step import Step


@dataclass(frozen=True, slots=True)
class Wanted:
    """One entry to restore, with the facts for it.

    Attributes:
        refs: part → object id.
        tree: where the worktree goes.
        reserve: whether the branch must be made; it is still there after ``--keep-branches``.
        head_branch: what is checked out; empty means detached at *commit*.
        commit: what is checked out.
        unborn: the branch without a commit that HEAD names in the end; empty: none.
        note: what cannot be as it was.
    """

    entry: SalvageEntry
    refs: dict[str, str]
    tree: Path
    reserve: bool
    head_branch: str
    commit: str
    unborn: str = ""
    note: str = ""


class _Now(NamedTuple):
    """How the repository stands: every branch and saved ref, every worktree that git knows."""

    refs: dict[str, str]
    worktrees: tuple[WorktreeEntry, ...]

    def is_checked_out(self, branch: str) -> bool:
        """Whether a worktree has the branch checked out; a missing worktree counts only if its lock reserves it."""
        listed = [entry for entry in self.worktrees if entry.branch == branch]
        return any(entry.locked or files.exists(entry.path) for entry in listed)

    def is_free(self, branch: str) -> bool:
        """Whether there is no such branch, and none below its name."""
        ref = places.HEADS + branch
        return not any(name == ref or name.startswith(f"{ref}/") for name in self.refs)

    def parts_of(self, entry: SalvageEntry) -> dict[str, str]:
        """Return part → object id of an entry."""
        prefix = places.salvage_ref(entry.session, entry.agent, entry.id, "")
        return {name.removeprefix(prefix): oid for name, oid in self.refs.items() if name.startswith(prefix)}


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a restore."""

    operation: transaction.Operation
    report: RestoreReport


def restore(world: World, target: str) -> RestoreReport:
    """Bring back *target*. The caller holds the lock and has recovered."""
    plan = make_plan(world, target)
    transaction.run(world, plan.operation)
    return plan.report


def make_plan(world: World, target: str) -> Plan:
    """Look whether everything can come back; changes nothing.

    Raises:
        SalvageNotFound, RestoreConflict, Refused, …
    """
    entries = salvage.find(world, target)
    saved = [(_session_of(entry), entry.record) for entry in entries]
    rights.check(world, "restore", saved, attempt=f"cannot restore {target}")
    now = _Now(world.git.refs(places.HEADS, places.SALVAGE_REFS), world.git.worktrees())
    wanted = [_want(world, now, entry) for entry in entries]
    wanted, left = _without_what_is_there(world, now, wanted) if not set(target) & {"/", "@"} else (wanted, ())
    problems = [
        *create_checks.check_folders(world, session=entries[0].session),
        *(p for one in wanted for p in _conflicts(world, now, one)),
    ]
    raise_all(f"cannot restore {target}", problems)
    return _lay_out(world, now, wanted, left)


def _without_what_is_there(world: World, now: _Now, wanted: list[Wanted]) -> tuple[list[Wanted], tuple[str, ...]]:
    """Leave out agents that already exist, or whose worktree was moved and never removed."""
    left: dict[str, str] = {}
    for one in wanted:
        entry, session = one.entry, world.sessions.get(one.entry.session)
        if session is not None and session.agent(entry.agent) is not None:
            left[entry.agent] = f"{entry.agent} is there already"
        elif entry.manifest["kind"] == "gone" and entry.record.branch and now.is_checked_out(entry.record.branch):
            left[entry.agent] = f"{entry.agent} was never removed: {entry.record.branch} is checked out elsewhere"
    if len(left) == len(wanted):
        return wanted, ()  # nothing would be done: it is said why
    return [one for one in wanted if one.entry.agent not in left], tuple(left.values())


def _want(world: World, now: _Now, entry: SalvageEntry) -> Wanted:
    refs = now.parts_of(entry)
    record = entry.record
    tree = world.layout.root / record.worktree if record.worktree else world.layout.root
    there = now.refs.get(places.HEADS + record.branch)
    head_branch, commit, note = _checkout(now, entry)
    unborn = _unborn(now, entry)
    note = "" if unborn else note
    note = "; ".join(text for text in (note, _missing(world, entry), _hollow(world, entry)) if text)
    return Wanted(entry, refs, tree, there is None and bool(entry.branch_tip), head_branch, commit, unborn, note)


def _hollow(world: World, entry: SalvageEntry) -> str:
    """Name the sockets and devices in folders that were kept as they were."""
    kept = world.layout.salvage_folder(entry.session, entry.agent, entry.id)
    found = [
        str((Path(where) / name).relative_to(top))
        for top in (kept / "files", kept / "late")
        for where, _, names in os.walk(top)
        for name in names
        if files.is_hollow((Path(where) / name).lstat().st_mode)
    ]
    return f"{entry.agent}: {', '.join(sorted(found))}: cannot be brought back" if found else ""


def _missing(world: World, entry: SalvageEntry) -> str:
    """Name files that git could not hold and that were deleted since."""
    kept = world.layout.salvage_folder(entry.session, entry.agent, entry.id)
    if (kept / "late").is_dir():
        return ""  # kept whole
    folder = kept / "files"
    gone = [path for path in entry.manifest.get("aside", ()) if not files.exists(folder / path)]
    more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
    return f"{entry.agent}: {', '.join(gone[:5])}{more}: deleted from {folder}, so not brought back" if gone else ""


def _checkout(now: _Now, entry: SalvageEntry) -> tuple[str, str, str]:
    """Decide the restored worktree's checkout: (branch, commit, note about a difference)."""
    saved = str(entry.manifest["head_branch"])
    if saved == entry.record.branch and entry.branch_tip:
        return saved, entry.branch_tip, ""
    if not saved or not entry.head:
        return "", entry.head or entry.branch_tip, ""
    ref = places.HEADS + saved
    unborn = entry.manifest.get("unborn", False)
    if not unborn and now.refs.get(ref) == entry.head and not now.is_checked_out(saved):
        return saved, entry.head, ""
    why = "was gone already" if unborn and saved == entry.record.branch else "is not free as it was"
    return "", entry.head, f"{entry.agent}: branch {saved} {why}, so HEAD is detached at its commit"


def _unborn(now: _Now, entry: SalvageEntry) -> str:
    """Return the branch without a commit that HEAD named, if it has none yet; not the agent's own: that was deleted."""
    branch = str(entry.manifest["head_branch"])
    if not entry.manifest.get("unborn") or branch == entry.record.branch:
        return ""
    return branch if now.is_free(branch) and not now.is_checked_out(branch) else ""


def _conflicts(world: World, now: _Now, one: Wanted) -> Iterator[SwarmError]:
    entry, record = one.entry, one.entry.record
    ref = places.HEADS + record.branch
    there = now.refs.get(ref)
    if there is not None and there != entry.branch_tip:
        what = f"branch {record.branch} already exists, at another commit than the one saved"
        yield BranchExists(what, details=name_checks.in_git(record.branch))
    if entry.manifest["kind"] == "branch":
        if there == entry.branch_tip:
            yield RestoreConflict(f"branch {record.branch} is there already")
        return
    if record.branch and one.head_branch == record.branch and now.is_checked_out(record.branch):
        yield RestoreConflict(f"branch {record.branch} is checked out in another worktree")
    if files.exists(one.tree):
        yield WorktreeExists(f"worktree {one.tree.name} already exists: {one.tree}", details=str(one.tree))
    elif world.git.admin_of(one.tree) is not None:
        what = f"worktree {one.tree.name} is still registered in git, though its folder is gone"
        yield WorktreeExists(what, details=str(one.tree))
    session = world.sessions.get(entry.session)
    if session is not None and session.agent(entry.agent) is not None:
        yield RestoreConflict(f"session {entry.session} has an agent {entry.agent} already")
    if not one.commit:
        yield RestoreConflict(f"{entry.name} holds no commit to start from")
    inside = os.path.normpath(one.tree).startswith(f"{world.layout.root}{os.sep}")
    if not inside and not places.is_place_of_run(one.tree, _session_of(entry).swarm_dir or str(world.swarm_dir)):
        yield RestoreConflict(f"{entry.name} names a path outside the repository")


def _lay_out(world: World, now: _Now, wanted: list[Wanted], left: tuple[str, ...]) -> Plan:
    operation = new_operation_id()
    trees = [one for one in wanted if one.entry.manifest["kind"] != "branch"]
    todo = (*_branch_steps(operation, wanted), *_tree_steps(world, now, operation, trees))
    own = (one.entry.record.branch for one in wanted if one.entry.record.branch)
    refs = (places.op_ref(operation), *(places.HEADS + branch for branch in own))
    session = wanted[0].entry.session
    started = time.time_ns()
    op = transaction.Operation(operation, "restore", session, started, boot_id(), todo, refs)
    notes = (*left, *(one.note for one in wanted if one.note))
    branches = tuple(one.entry.record.branch for one in wanted if one not in trees)
    return Plan(op, RestoreReport(session, tuple(_told(one) for one in trees), notes, branches=branches))


def _told(one: Wanted) -> CreatedAgent:
    record = one.entry.record
    placed = record.placed[0].path if record.placed else ""
    return CreatedAgent(record.name, record.role, record.branch, one.tree, placed)


def _branch_steps(operation: str, wanted: list[Wanted]) -> Iterator[Step]:
    reserve = [one for one in wanted if one.reserve]
    yield branch_steps.ReserveBranches(
        operation,
        tuple((one.entry.record.branch, one.entry.branch_tip) for one in reserve),
        tuple((one.entry.session, one.entry.agent) for one in reserve),
        wanted[0].commit or wanted[0].entry.branch_tip,
    )
    for one in reserve:
        config = tuple((str(k), str(v)) for k, v in one.entry.manifest["branch_config"])
        yield branch_steps.BranchNotes(operation, one.entry.record.branch, one.refs["manifest"], config)


def _base_steps(world: World, operation: str, wanted: list[Wanted]) -> Iterator[Step]:
    """Make the folders of the worktrees; that of the subtrees where one of them comes back."""
    subtrees = world.layout.subtrees
    for base in (world.layout.base, *{one.tree.parent for one in wanted if one.tree.parent == subtrees}):
        yield file_steps.MakeBase(operation, str(base), base.is_dir(), files.exists(base / ".gitignore"))


def _tree_steps(world: World, now: _Now, operation: str, wanted: list[Wanted]) -> Iterator[Step]:
    if not wanted:
        return
    yield from _base_steps(world, operation, wanted)
    placed: dict[str, list[str]] = {}
    for one in wanted:
        for item in one.entry.record.placed:
            placed.setdefault(item.path, []).append(str(one.tree))
    for file in placed:
        yield from hiding.steps_before(world, operation, file)
    yield from setup.steps_before(world, operation, ((one.entry, one.tree) for one in wanted))
    taken = tuple(admin.name for admin in world.git.admin_dirs())
    used = {entry.branch for entry in now.worktrees}  # if an existing agent has it, the restore was refused
    for one in wanted:
        place = (str(one.tree), one.head_branch, one.commit, taken)
        yield tree_steps.AddWorktree(operation, *place, salvaged=True, anyway=one.head_branch in used - {""})
    if alike := tuple(str(one.tree) for one in wanted if _is_like_its_commit(world, one)):
        yield tree_steps.FillWorktrees(operation, alike, content=world.git.place.tree)
    for one in wanted:
        folder = world.layout.salvage_folder(one.entry.session, one.entry.agent, one.entry.id)
        yield tree_steps.BringBack(operation, str(one.tree), tuple(sorted(one.refs.items())), str(folder))
    yield from setup.steps_back(operation, ((one.entry, one.tree) for one in wanted))
    for file, trees in placed.items():
        yield from hiding.steps_within(world, operation, file, tuple(trees))
    yield tree_steps.Verify(operation, tuple((str(one.tree), one.head_branch, one.commit) for one in wanted))
    yield from _steps_after_the_check(operation, wanted)
    for one in wanted:
        folder = world.layout.salvage_folder(one.entry.session, one.entry.agent, one.entry.id)
        yield from inbox_steps.steps_back(world, operation, one.entry.session, one.entry.record.name, folder)
        yield from box_steps.steps_back(world, operation, one.entry.session, one.entry.record.name, one.tree, folder)
    yield file_steps.SyncToDisk(operation, str(world.layout.base.parent))
    yield file_steps.WriteRecord(operation, codec.session_to_bytes(_session(world, operation, wanted)).decode("ascii"))


def _is_like_its_commit(world: World, one: Wanted) -> bool:
    """Whether the saved state is a commit and some files, so that it starts like every new worktree."""
    entry = one.entry
    whole = world.layout.salvage_folder(entry.session, entry.agent, entry.id) / "late"
    return bool(entry.manifest.get("as_head")) and not whole.is_dir()


def _steps_after_the_check(operation: str, wanted: list[Wanted]) -> Iterator[Step]:
    """Yield the steps for states that the check would refuse: a HEAD at no commit, a lock."""
    for one in wanted:
        if one.unborn:
            yield branch_steps.PointHead(operation, str(one.tree), one.unborn)
    for one in wanted:
        if one.entry.manifest["lock"] is not None:
            yield tree_steps.LockAgain(operation, str(one.tree), str(one.entry.manifest["lock"]))


def _session(world: World, operation: str, wanted: list[Wanted]) -> Session:

    session = wanted[0].entry.session
    records = [one.entry.record._replace(admin="", may=rights.passed_on(world, one.entry.record.may)) for one in wanted]
    agents = tuple(ports.again(world, records, session))
    old = world.sessions.get(wanted[0].entry.session)
    if old is not None:
        return old._replace(operations=(*old.operations, operation), agents=(*old.agents, *agents))
    saved = _session_of(wanted[0].entry)
    return saved._replace(operations=(*saved.operations, operation), agents=agents)


def _session_of(entry: SalvageEntry) -> Session:
    """Return the session that an entry was saved of, as far as the entry tells, without agents."""
    facts: dict[str, Any] = entry.manifest
    return Session(
        name=entry.session,
        operations=(str(facts["generation"]),),
        created_ms=int(facts["session_created_ms"]),
        base_ref=str(facts["base_ref"]),
        base=str(facts["base"]),
        agents=(),
        task=str(facts.get("task", "")),
        workflow=str(facts.get("workflow", "")),
        beside=str(facts.get("beside", "")),
        parent=codec.parent_from_dict(facts.get("parent")),
        pod=str(facts.get("pod", "")),
        template=str(facts.get("template", "")),
        swarm_dir=str(facts.get("swarm_dir", "")),
        kind=codec.kind_of(facts.get("kind_of_session", TEAM)),
        depth=int(facts.get("depth", 0)),
        ancestors=codec.ancestors_from(facts.get("ancestors", [])),
    )
