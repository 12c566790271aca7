"""Plant a bug, and the suite must find it: a checker that cannot fail proves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from swarm.git import gitdir
from swarm.kit import files as fsio
from swarm.project.journal import Journal
from swarm.project.sessions import Sessions
from swarm.sessions.cleanup import cleanup_remove
from swarm.worktrees import transaction
from swarm.worktrees.saved import salvage
from swarm.worktrees.setup import setup as worktree_setup
from swarm.worktrees.steps import branch_steps, file_steps, tree_steps
from swarm.worktrees.steps.step import Step
from tests.support.crash import NestedTrials, Trials
from tests.support.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.support.crash import Bench

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]
Patch = pytest.MonkeyPatch


def rollback_forgets_the_failing_role(patch: Patch) -> None:
    undo = tree_steps.AddWorktree.undo_files

    def forgetful(self: tree_steps.AddWorktree, world: Any) -> None:
        if "reviewer" not in self.tree:
            undo(self, world)

    patch.setattr(tree_steps.AddWorktree, "undo_files", forgetful)


def rollback_forgets_a_branch(patch: Patch) -> None:
    undo = branch_steps.ReserveBranches.undo

    def forgetful(self: branch_steps.ReserveBranches, world: Any) -> None:
        undo(replace(self, branches=self.branches[:-1], agents=self.agents[:-1]), world)

    patch.setattr(branch_steps.ReserveBranches, "undo", forgetful)


def record_written_before_the_files(patch: Patch) -> None:
    run = transaction.run

    def hasty(world: Any, operation: transaction.Operation, *rest: Any, **more: Any) -> Any:
        record = [step for step in operation.steps if isinstance(step, file_steps.WriteRecord)]
        others = [step for step in operation.steps if step not in record]
        at = next(n for n, step in enumerate(others) if isinstance(step, tree_steps.FillWorktrees))
        return run(world, replace(operation, steps=(*others[:at], *record, *others[at:])), *rest, **more)

    patch.setattr(transaction, "run", hasty)


def journal_not_written(patch: Patch) -> None:
    patch.setattr(Journal, "write", lambda self, operation, record: None)


def journal_dropped_before_the_rollback_is_over(patch: Patch) -> None:
    roll_back = transaction.roll_back

    def hasty(world: Any, record: dict[str, Any], *rest: Any, **more: Any) -> None:
        world.journal.drop(record["operation"])
        roll_back(world, record, *rest, **more)

    patch.setattr(transaction, "roll_back", hasty)


def lock_files_of_killed_gits_stay(patch: Patch) -> None:
    patch.setattr(gitdir, "remove_stale_locks", lambda *_: [])


def recovery_runs_git_first(patch: Patch) -> None:
    patch.setattr(transaction, "_first_aid", lambda *_: None)

    def roll_back(world: Any, *rest: Any, **more: Any) -> None:
        world.git.worktrees()
        original(world, *rest, **more)

    original = transaction.roll_back
    patch.setattr(transaction, "roll_back", roll_back)


def temporary_files_are_not_swept(patch: Patch) -> None:
    patch.setattr(Journal, "sweep", lambda self: None)
    patch.setattr(Sessions, "sweep", lambda self: None)


def removal_goes_on_before_all_is_saved(patch: Patch) -> None:
    go_on = cleanup_remove.continue_cleanup
    patch.setattr(cleanup_remove, "continue_cleanup", lambda world, record: go_on(world, {**record, "phase": "remove"}))


def salvage_forgets_untracked_files(patch: Patch) -> None:
    save = salvage.save

    def forgetful(world: Any, operation: str, saving: Sequence[Any]) -> Any:
        return save(world, operation, [(replace(target, keep=()), *rest) for target, *rest in saving])

    patch.setattr(salvage, "save", forgetful)


def salvage_forgets_the_detached_commit(patch: Patch) -> None:
    save = salvage.save

    def forgetful(world: Any, operation: str, saving: Sequence[Any]) -> Any:
        refs = save(world, operation, saving)
        head = {ref: oid for ref, oid in refs.items() if ref.endswith(("/head", "/index", "/work", "/keep"))}
        world.git.change_refs(delete=head, reason="forgotten")
        return refs

    patch.setattr(salvage, "save", forgetful)


def branch_settings_forgotten_after_a_crash(patch: Patch) -> None:
    delete, forget = cleanup_remove._delete_branches, cleanup_remove._forget
    deleted: set[str] = set()

    def noted(world: Any, items: Sequence[dict[str, Any]]) -> None:
        deleted.update(item["branch"] for item in items if world.git.refs(f"refs/heads/{item['branch']}"))
        delete(world, items)

    def forgetful(world: Any, record: dict[str, Any], item: dict[str, Any], session: Any) -> None:
        forget(world, record, item if item["branch"] in deleted else {**item, "tip": ""}, session)

    patch.setattr(cleanup_remove, "_delete_branches", noted)
    patch.setattr(cleanup_remove, "_forget", forgetful)


def failure_of_git_taken_for_success(patch: Patch) -> None:
    from swarm.git.running.runner import GitRunner

    patch.setattr(GitRunner, "run", lambda self, *args, ok=(0,), what="", **more: self.attempt(*args, **more)[1])
    patch.setattr(tree_steps.Verify, "do", lambda self, world: None)


def the_users_exclude_file_is_rewritten(patch: Patch) -> None:
    def careless(exclude: Path, **_: Any) -> None:
        fsio.write_atomic(exclude, fsio.read_small(exclude).replace(b"/no line end", b"/no line end\n"), 0o644)

    patch.setattr(file_steps, "show_again", careless)


def files_of_a_setup_taken_for_somebodys_work(patch: Patch) -> None:
    patch.setattr(worktree_setup.SetUp, "undo", Step.undo)


def notes_of_a_setup_stay(patch: Patch) -> None:
    patch.setattr(worktree_setup.SetUp, "undo_files", Step.undo_files)


#: (bug, scenario, action, stride, where in the command it is looked for first)
BUGS: tuple[tuple[Callable[[Patch], None], str, str, int, float], ...] = (
    (rollback_forgets_the_failing_role, "create-fails", "kill-tree", 11, 0.6),
    (rollback_forgets_the_failing_role, "create", "kill-tree", 11, 0.6),
    (rollback_forgets_a_branch, "create", "kill-tree", 11, 0.6),
    (record_written_before_the_files, "create", "kill-tree", 11, 0.6),
    (journal_not_written, "create", "kill-tree", 11, 0.6),
    (lock_files_of_killed_gits_stay, "create", "kill-tree", 1, 0.6),
    (recovery_runs_git_first, "create-git", "kill-tree", 1, 0.4),
    (temporary_files_are_not_swept, "create", "kill-tree", 1, 0.087),
    (removal_goes_on_before_all_is_saved, "cleanup-force", "kill-tree", 23, 0.5),
    (salvage_forgets_untracked_files, "cleanup-force", "kill-tree", 23, 0.6),
    (salvage_forgets_the_detached_commit, "cleanup-force", "kill-tree", 23, 0.6),
    (branch_settings_forgotten_after_a_crash, "cleanup-packed", "kill-tree", 1, 0.86),
    (failure_of_git_taken_for_success, "create", "kill-self", 5, 0.6),
    (the_users_exclude_file_is_rewritten, "create", "eio", 17, 0.6),
    (files_of_a_setup_taken_for_somebodys_work, "create-setup", "kill-tree", 7, 0.8),
    (notes_of_a_setup_stay, "create-setup", "kill-tree", 7, 0.9),
)


@pytest.mark.parametrize(
    ("bug", "name", "action", "stride", "near"), BUGS, ids=[f"{bug.__name__}-{name}" for bug, name, *_ in BUGS]
)
def test_is_found(
    bench: Bench, monkeypatch: Patch, bug: Callable[[Patch], None], name: str, action: str, stride: int, near: float
) -> None:
    setup = bench.setup(SCENARIOS[name])  # the references are those of the sound program
    bug(monkeypatch)

    points = sorted(range(1, setup.count + 1, stride), key=lambda at: abs(at - setup.count * near))
    tally = Trials(setup, action).run(points, stop_at_first=True)

    assert tally.violations, f"{tally.trials} trials did not find it"


def test_a_bug_inside_the_recovery_is_found(bench: Bench, monkeypatch: Patch) -> None:
    setup = bench.setup(SCENARIOS["create"])
    journal_dropped_before_the_rollback_is_over(monkeypatch)

    tally = NestedTrials(setup, "kill-tree").run_nested([setup.count // 2], 3, ("kill-tree",))

    assert tally.violations


def test_the_sound_program_passes_the_same_trials(bench: Bench) -> None:
    """What found the bugs above finds nothing where there is none."""
    for name in ("create-fails", "cleanup-packed"):
        setup = bench.setup(SCENARIOS[name])
        tally = Trials(setup, "kill-tree").run(range(7, setup.count + 1, 60))
        assert not tally.violations, tally.violations[0]
