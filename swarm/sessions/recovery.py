"""Finish or roll back interrupted operations: the one table of the steps and kinds that a journal can hold.

A crash is recovered by another process than the one that began the operation, so nothing here may
depend on which modules that process has used before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.worktrees import transaction

if TYPE_CHECKING:
    from swarm.project.world import World
    from swarm.worktrees.reports import RecoverReport


def recover(world: World, *, wait: bool) -> RecoverReport:
    """Bring every unfinished operation to an end. The caller holds the lock.

    Args:
        wait: until all that was removed is deleted, too.
    """
    return transaction.recover(world, known, wait=wait)


def known() -> transaction.Known:
    """Return every step and kind of operation; loads nearly all of swarm."""
    from swarm.agents import stop_tree
    from swarm.agents.launching import launch, launch_files, unseen
    from swarm.merging import merge
    from swarm.sandbox import intake
    from swarm.sandbox import steps as box_steps
    from swarm.sessions import adopting, marks
    from swarm.sessions.cleanup import cleanup_remove
    from swarm.worktrees import hiding
    from swarm.worktrees.saved import salvage_drop
    from swarm.worktrees.setup import setup
    from swarm.worktrees.steps import branch_steps, file_steps, inbox_steps, layout_steps, pool_steps, tree_steps

    steps = (
        *(branch_steps.ReserveBranches, branch_steps.BranchNotes, branch_steps.PointHead),
        *(file_steps.MakeBase, file_steps.HideInstructions, file_steps.PlaceInstructions),
        *(file_steps.SyncToDisk, file_steps.WriteRecord),
        *(tree_steps.AddWorktree, tree_steps.FillWorktrees, tree_steps.CopyWork),
        *(tree_steps.BringBack, tree_steps.LockAgain, tree_steps.Verify),
        pool_steps.TakeParked,
        inbox_steps.BringInboxBack,
        layout_steps.WriteLayout,
        hiding.HideInWorktrees,
        setup.SetUp,
        setup.RememberSetup,
        box_steps.MakeBox,
        box_steps.BringBoxBack,
        launch_files.PrepareRun,
        launch.PreapproveFolder,
        launch.OpenPanes,
        unseen.StartUnseen,
        launch.LockRunning,
    )
    return transaction.Known(
        steps={step.__name__: step for step in steps},
        kinds={
            "cleanup": cleanup_remove.continue_cleanup,
            "intake": intake.continue_intake,
            "drop": salvage_drop.continue_drop,
            "merge": merge.continue_merge,
            "role": marks.put_role,
            adopting.KIND: adopting.continue_adoption,
            stop_tree.KIND: stop_tree.continue_stop,
        },
    )
