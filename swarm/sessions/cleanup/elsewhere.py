"""Report conversations that continue outside of their panes to a cleanup.

Neither can swarm end them, nor do they always have a process in the worktree that would be seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.programs import processes
from swarm.worktrees.reports import Risk, RiskKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.project.world import World
    from swarm.worktrees.examine import Target


def with_risk(world: World, targets: Iterable[Target]) -> tuple[Target, ...]:
    """Return the targets; each whose conversation goes on elsewhere with that as a risk."""
    return tuple(_with_risk(world, target) for target in targets)


def warnings(targets: Iterable[Target]) -> tuple[str, ...]:
    """Return a line for each of them whose worktree was removed all the same."""
    return tuple(
        f"{target.session.name}/{target.agent.name}: its worktree is gone, but {risk.text}"
        for target in targets
        for risk in target.risks
        if risk.kind is RiskKind.ELSEWHERE
    )


def _with_risk(world: World, target: Target) -> Target:
    if not target.agent.program:
        return target
    facts = processes.facts(world.layout.run_folder(target.session.name, target.agent.name))
    if not facts.elsewhere:
        return target
    risk = Risk(RiskKind.ELSEWHERE, f"its conversation goes on in {facts.elsewhere}")
    return replace(target, risks=(*target.risks, risk))
