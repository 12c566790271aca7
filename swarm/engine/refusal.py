"""Why a cleanup refuses, in words with which one can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.domain.errors import WorkAtRisk
from swarm.domain.model import RiskKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from swarm.domain.model import AgentRisks


def at_risk(agents: tuple[AgentRisks, ...], *, discard: bool, running: Collection[tuple[str, str]]) -> WorkAtRisk:
    """Say what stands against it, and what to do.

    Args:
        discard: nothing was to be saved.
        running: (session, agent) of those whose own program runs.
    """
    names = [f"{one.session}/{one.agent}" for one in agents]
    who = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    kinds = {risk.kind for one in agents for risk in one.risks}
    what = f"processes still run in {who}" if kinds == {RiskKind.PROCESS} else f"there is work at risk in {who}"
    return WorkAtRisk(
        f"nothing was removed: {what}", hint=_hint(agents, kinds, running, discard=discard), agents=agents
    )


def _hint(
    agents: tuple[AgentRisks, ...], kinds: set[RiskKind], running: Collection[tuple[str, str]], *, discard: bool
) -> str | None:
    if discard:
        return "--force instead of --discard salvages it first; with both of them it is gone for good"
    if kinds == {RiskKind.PROCESS}:
        if all((one.session, one.agent) in running for one in agents):
            return f"stop them with `{_stopping(agents)}`; or add --force: that stops them and salvages what they leave"
        return "let them end, or leave the folder; --force salvages the files and removes it all the same"
    if kinds <= {RiskKind.IDENTITY, RiskKind.UNREADABLE, RiskKind.PROCESS}:
        return (
            "it cannot be committed; --force salvages what is there, then removes it (`swarm restore` brings it back)"
        )
    if kinds == {RiskKind.LOCKED}:
        unlock = " && ".join(f"swarm worktree unlock {one.agent}@{one.session}" for one in agents[:3])
        return f"take the lock away with `{unlock}`, or add --force"
    return None


def _stopping(agents: tuple[AgentRisks, ...]) -> str:
    """Return a command line that ends these agents, as one can paste it."""
    sessions = list(dict.fromkeys(one.session for one in agents))
    return " && ".join(f"swarm stop {name}" for name in sessions)
