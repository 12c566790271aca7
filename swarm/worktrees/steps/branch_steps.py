"""The steps of branches: reserve them, and give a restored one its notes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.project import layout as places
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from swarm.project.world import World


@dataclass(frozen=True, slots=True)
class ReserveBranches(Step):
    """Make the mark and all branches in one ref transaction: one taken name and none is made.

    Attributes:
        branches: (branch, commit) each.
        agents: for each branch, the session and agent whose work it would hold.
    """

    branches: tuple[tuple[str, str], ...]
    agents: tuple[tuple[str, str], ...]
    mark_at: str

    def do(self, world: World) -> None:
        mark = {places.op_ref(self.operation): self.mark_at}
        heads = {places.HEADS + branch: commit for branch, commit in self.branches}
        world.git.change_refs(create={**mark, **heads}, reason=f"swarm: created by {self.operation}")

    def undo(self, world: World) -> None:
        mark = places.op_ref(self.operation)
        refs = world.git.refs(mark, *(places.HEADS + branch for branch, _ in self.branches))
        self._drop_logs(world, refs)
        if mark not in refs:
            return  # the transaction never came about: branches of these names are not ours
        mine = {
            places.HEADS + branch: (commit, who)
            for (branch, commit), who in zip(self.branches, self.agents, strict=True)
        }
        moved = {
            places.salvage_ref(*who, f"rollback-{self.operation}", "head"): refs[ref]
            for ref, (commit, who) in mine.items()
            if refs.get(ref, commit) != commit
        }
        kept = world.git.refs(*moved) if moved else {}
        world.git.change_refs(
            create={ref: oid for ref, oid in moved.items() if ref not in kept},
            reason="swarm: work found while rolling back",
        )
        world.git.change_refs(
            delete={**{ref: refs[ref] for ref in mine if ref in refs}, mark: refs[mark]},
            reason=f"swarm: rolled back {self.operation}",
        )

    def _drop_logs(self, world: World, refs: dict[str, str]) -> None:
        """Remove the logs of branches that git began and never made: it writes the log first."""
        for branch, _ in self.branches:
            log = world.git.common / "logs" / places.HEADS / branch
            if places.HEADS + branch in refs or not log.is_file():
                continue
            if log.stat().st_size == 0 or self.operation in world.git.first_reflog_message(branch):
                files.unlink_if_there(log)

    def say(self) -> str:
        return f"create the branch{'es' if len(self.branches) > 1 else ''} " + ", ".join(
            branch for branch, _ in self.branches
        )


@dataclass(frozen=True, slots=True)
class BranchNotes(Step):
    """Give a restored branch its old log and its configuration.

    Attributes:
        manifest: the commit that holds the saved log.
    """

    branch: str
    manifest: str
    config: tuple[tuple[str, str], ...]

    def do(self, world: World) -> None:
        log = world.trees.saved_file(self.manifest, "branch-log")
        path = world.git.common / "logs" / places.HEADS / self.branch
        if log is not None and path.is_file():
            files.write_atomic(path, log, 0o644, durable=False)
        world.git.add_config(self.config)

    def undo_files(self, world: World) -> None:
        log = world.git.common / "logs" / places.HEADS / self.branch
        files.sweep_temporaries(log.parent, log.name)

    def undo(self, world: World) -> None:
        mark = places.op_ref(self.operation)
        if self.config and mark in world.git.refs(mark):
            world.git.drop_branch_config(self.branch)

    def say(self) -> str:
        return f"restore the log and settings of {self.branch}"


@dataclass(frozen=True, slots=True)
class PointHead(Step):
    """Check out a branch that has no commit yet, which git does for no worktree that it adds."""

    tree: str
    branch: str

    def do(self, world: World) -> None:
        admin = world.git.admin_of(Path(self.tree))
        if admin is not None:
            world.git.point_head(admin, f"{places.HEADS}{self.branch}")

    def say(self) -> str:
        return f"check out {self.branch}, which has no commit yet, in {Path(self.tree).name}"
