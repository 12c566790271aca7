"""Run an operation all or nothing, and recover interrupted ones.

    write the operation down ──► step, step, step ──► WriteRecord ══ committed ══► tidy up ──► forget it
              │                        │                                │
       crash: undo (nothing)     crash: undo all               crash: tidy up

Only one thing decides whether a set exists: its record, written by the last step.  Recovery asks
for it and goes one way or the other; it may be interrupted and repeated at any point.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.callers.caller import actor
from swarm.kit import files
from swarm.kit.errors import Interrupted, SwarmError, told_of
from swarm.project import layout as places
from swarm.project.errors import RecordProblem
from swarm.worktrees import adopt, deletion, trash
from swarm.worktrees.reports import RecoverReport
from swarm.worktrees.steps.step import from_dict, to_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from swarm.project.world import World
    from swarm.worktrees.steps.step import Step


@dataclass(frozen=True, slots=True)
class Operation:
    """An all-or-nothing operation whose last step writes a session record.

    Attributes:
        verb: such as ``create``, for people.
        refs: what it changes, whose lock files a killed git may leave.
    """

    id: str
    verb: str
    session: str
    started_ns: int
    boot: str
    steps: tuple[Step, ...]
    refs: tuple[str, ...]

    def to_record(self, world: World) -> dict[str, Any]:
        """Return the journal entry."""
        return {
            "kind": "set",
            "operation": self.id,
            "verb": self.verb,
            "session": self.session,
            "started_ns": self.started_ns,
            "boot": self.boot,
            "pid": os.getpid(),
            "locks": [str(lock) for lock in world.git.ref_locks(self.refs) if not files.exists(lock)],
            "steps": [to_dict(step) for step in self.steps],
        }


def run(world: World, operation: Operation) -> None:
    """Do every step, or undo all of them and raise the error."""
    record = operation.to_record(world)
    try:
        world.journal.write(operation.id, record)
        # A rollback must not need room: this folder is made while there is some.
        files.make_folders(world.layout.trash_folder(operation.id), 0o700)
        for step in operation.steps:
            step.do(world)
    except BaseException as error:
        if not _committed(world, operation.id, operation.session):
            _roll_back_now(world, operation, record, error)
            raise
        # The record exists, and only its last sync failed: say so, or a reader of "failed" starts again.
        if isinstance(error, OSError):
            error = files.translate(error, f"cannot finish {operation.verb} of {operation.session}")
        if isinstance(error, SwarmError):
            error.message += " (the set is complete and stays)"
        raise error from None
    _tidy(world, record)


def _roll_back_now(world: World, operation: Operation, record: dict[str, Any], error: BaseException) -> None:
    """Roll back in this process; the next command does the part that fails now."""
    world.git.stop_all()
    world.git.resume()
    error = told_of(error)
    try:
        roll_back(world, record, operation.steps, outcome=type(error).__name__)
    except Exception as second:  # noqa: BLE001  # the first error is what the user must see; this is added to it
        error.add_note(f"the rollback could not finish ({second}); the next swarm command does it")
        if isinstance(error, SwarmError):
            error.facts["rollback"] = f"unfinished: {second}"
    else:
        if isinstance(error, Interrupted):
            error.message += "; swarm undid everything it had begun"


def _tidy(world: World, record: dict[str, Any]) -> None:
    """After the commit: drop the mark and the journal entry. Failing here changes nothing that counts."""
    with contextlib.suppress(SwarmError, OSError):
        finish(world, record, mark=_mark(record))


def _mark(record: dict[str, Any]) -> str | None:
    """Return where this very process has just put the operation's mark."""
    return next((str(step["mark_at"]) for step in record["steps"] if "mark_at" in step), None)


def _committed(world: World, operation: str, session: str) -> bool:
    """Whether the record that the operation writes is in place."""
    found = world.sessions.get(session)
    return found is not None and operation in found.operations


def finish(world: World, record: dict[str, Any], *, mark: str | None = None) -> None:
    """Roll forward: the set exists, only swarm's own notes are left to remove.

    Args:
        mark: what the operation's mark points at, where that is known.
    """
    ref = places.op_ref(record["operation"])
    tip = mark or world.git.refs(ref).get(ref)
    if tip is not None:
        world.git.drop_ref(ref, tip, reason="swarm: done")
    close(world, record, "done")


def roll_back(world: World, record: dict[str, Any], steps: Sequence[Step], outcome: str = "crash") -> None:
    """Take back a set that was not committed. May be interrupted and repeated."""
    files.make_folders(world.layout.trash_folder(record["operation"]), 0o700)
    for step in reversed(steps):
        step.undo_files(world)
    clear_locks(world, record)
    for step in reversed(steps):
        step.undo(world)
    close(world, record, f"rolled back ({outcome})")


def close(world: World, record: dict[str, Any], outcome: str = "") -> None:
    """Leave nothing of an operation behind: no lock file, no empty folder, no trash; its entry goes last."""
    _tidy_up(world, record)
    trash.empty(world, record["operation"])
    if outcome:
        _note(world, record, outcome)
    world.journal.drop(record["operation"])


def close_early(world: World, record: dict[str, Any], outcome: str) -> None:
    """Do the same, but leave the trash to a process that outlives this one."""
    _tidy_up(world, record)
    _note(world, record, outcome)
    if deletion.hand_over(world.layout, record["operation"]):
        deletion.start(world.layout)
    else:
        trash.empty(world, record["operation"])
        world.journal.drop(record["operation"])


def _tidy_up(world: World, record: dict[str, Any]) -> None:
    # Once more at the end: git says "done" also when it could not remove its own lock files.
    clear_locks(world, record)
    world.git.prune_empty_ref_folders(world.settings.worktrees.branch_prefix)


def clear_locks(world: World, record: dict[str, Any]) -> None:
    """Move away lock files that a killed git of this operation left.

    Raises:
        SwarmError: one of them cannot be shown to be ours; it stays, and so does the operation.
    """
    from pathlib import Path

    aside = world.layout.trash_folder(record["operation"])
    locks = [Path(lock) for lock in record["locks"]]
    kept = world.git.remove_stale_locks(locks, record["started_ns"], aside)
    if kept:
        from swarm.git.errors import GitBusy

        raise GitBusy(f"cannot recover operation {record['operation']}: git is at work, {kept[0]} exists")


def _note(world: World, record: dict[str, Any], outcome: str) -> None:
    note(world, record["operation"], record["verb"], record["session"], outcome)


def note(world: World, operation: str, verb: str, session: str, outcome: str) -> None:
    """Add a line to the history: operation, caller and outcome. A full disk is no reason to fail."""
    with contextlib.suppress(OSError):
        world.journal.log(
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            operation=operation,
            verb=verb,
            session=session,
            actor=actor(world),
            outcome=outcome,
            pid=os.getpid(),
        )


def done_here(world: World, before: tuple[int, int]) -> str:
    """Return in words this process's last operation since a mark of the history; empty if it is not done."""
    last = world.journal.history()[-1:] if world.journal.mark() != before else ()
    if not last or last[0].get("outcome") != "done" or last[0].get("pid") != os.getpid():
        return ""
    verb, session = last[0].get("verb", ""), last[0].get("session", "")
    return f"{verb} of {session}" if session else str(verb)


class Known(NamedTuple):
    """The steps and kinds that a journal entry may name.

    Attributes:
        steps: the classes of steps, by the name in the journal.
        kinds: for each kind of operation that is no set of steps, the function that brings it to an end.
    """

    steps: Mapping[str, type[Step]]
    kinds: Mapping[str, Callable[[World, dict[str, Any]], str]]


def recover(world: World, known: Callable[[], Known], *, wait: bool = True) -> RecoverReport:
    """Bring every unfinished operation to an end. The caller holds the lock, so their processes are dead.

    Args:
        known: asked only where there is something to recover.
        wait: until all that was removed is deleted.
    """
    back: list[str] = []
    forward: list[str] = []
    records = [world.journal.read(operation) for operation in world.journal.unfinished()]
    _sweep_temporaries(world)
    table = known() if records else Known({}, {})
    steps = _steps_of(world, records, table)
    _first_aid(world, steps)
    for record in records:
        name = f"{record['verb']} of {record['session']}" if record["session"] else record["verb"]
        if record["kind"] != "set":
            outcome = _kind(record, table)(world, record)
            (forward if outcome == "done" else back).append(name)
        elif record["operation"] not in steps:
            clear_locks(world, record)
            finish(world, record)  # by then git works again, whatever stood in its way
            forward.append(name)
        else:
            roll_back(world, record, steps[record["operation"]])
            back.append(name)
    trash.sweep(world, wait=wait)
    notes = [note for record in records for note in record.get("notes", ())]
    notes += [
        f"session {name} is known again: swarm rebuilt its record from its worktrees" for name in adopt.adopt(world)
    ]
    return RecoverReport(rolled_back=tuple(back), finished=tuple(forward), notes=tuple(notes))


def _steps_of(world: World, records: Sequence[dict[str, Any]], known: Known) -> dict[str, tuple[Step, ...]]:
    """Return the steps of each set that was not committed, by operation."""
    return {
        record["operation"]: tuple(_step(record, item, known) for item in record["steps"])
        for record in records
        if record["kind"] == "set" and not _committed(world, record["operation"], record["session"])
    }


def _first_aid(world: World, steps: Mapping[str, Sequence[Step]]) -> None:
    """Undo, with plain file operations, the states in which every git command fails."""
    for undone in steps.values():
        for step in undone:
            step.undo_files(world)


def _step(record: dict[str, Any], item: dict[str, Any], known: Known) -> Step:
    try:
        return from_dict(item, known.steps[item["step"]])
    except (KeyError, TypeError):
        raise _unreadable(record, f"unknown step {item.get('step')!r}") from None


def _kind(record: dict[str, Any], known: Known) -> Callable[[World, dict[str, Any]], str]:
    try:
        return known.kinds[record["kind"]]
    except KeyError:
        raise _unreadable(record, f"unknown kind {record['kind']!r}") from None


def _unreadable(record: dict[str, Any], cause: str) -> RecordProblem:
    return RecordProblem(
        f"cannot recover operation {record['operation']}: {cause}; another version of swarm began it",
        hint="run this command with that version of swarm",
    )


def _sweep_temporaries(world: World) -> None:
    """Remove the files that a kill in the middle of a write left, wherever swarm writes one."""
    world.journal.sweep()
    world.sessions.sweep()
    files.sweep_temporaries(world.layout.dropped.parent, world.layout.dropped.name)
    files.sweep_temporaries(world.git.common / "info", "exclude")
    for admin in world.git.admin_dirs():
        files.sweep_temporaries(admin.path, "locked")
        files.sweep_temporaries(admin.path, places.RECORD_COPY)
    for session in world.sessions.all():
        for agent in session.agents:
            files.sweep_temporaries(world.layout.run_folder(session.name, agent.name), "launch.json")
            for placed in agent.placed:
                path = world.layout.root / agent.worktree / placed.path
                files.sweep_temporaries(path.parent, path.name)
