"""Words for a refused cleanup: the risks, and the next commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.worktrees.errors import WorkAtRisk
from swarm.worktrees.reports import RiskKind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from swarm.worktrees.reports import AgentRisks


def at_risk(
    agents: tuple[AgentRisks, ...], *, discard: bool, whole: bool, running: Collection[tuple[str, str]]
) -> WorkAtRisk:
    """Return the refusal with its reasons and hints.

    Args:
        discard: nothing was to be saved.
        whole: sessions were to go, not single agents.
        running: (session, agent) of those whose own program runs.
    """
    names = [f"{one.session}/{one.agent}" for one in agents]
    who = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    kinds = {risk.kind for one in agents for risk in one.risks}
    if kinds == {RiskKind.PROCESS}:
        own = all((one.session, one.agent) in running for one in agents)
        what = (
            f"{'agents run' if len(agents) > 1 else 'the agent is running'}: {who}"
            if own
            else f"processes still run in {who}"
        )
    elif RiskKind.ELSEWHERE in kinds:
        found = next(r for one in agents for r in one.risks if r.kind is RiskKind.ELSEWHERE)
        what = f"an agent has moved: {who}; {found.text}"
    else:
        what = f"there is work at risk in {who}"
    return WorkAtRisk(
        f"nothing was removed: {what}", hint=_hint(agents, kinds, running, discard=discard, whole=whole), agents=agents
    )


def _hint(
    agents: tuple[AgentRisks, ...],
    kinds: set[RiskKind],
    running: Collection[tuple[str, str]],
    *,
    discard: bool,
    whole: bool,
) -> str | None:
    if discard:
        return "--force instead of --discard salvages it first; with both of them it is gone for good"
    if RiskKind.ELSEWHERE in kinds:
        return "end that conversation first; --force saves the files and removes the worktree below it all the same"
    if kinds == {RiskKind.PROCESS} or any((one.session, one.agent) in running for one in agents):
        return _hint_while_they_run(agents, kinds, running, whole=whole)
    if kinds <= {RiskKind.IDENTITY, RiskKind.UNREADABLE, RiskKind.PROCESS}:
        return (
            "it cannot be committed; --force salvages what is there, then removes it (`swarm restore` brings it back)"
        )
    if kinds == {RiskKind.LOCKED}:
        unlock = " && ".join(f"swarm worktree unlock {one.agent}@{one.session}" for one in agents[:3])
        return f"remove the lock with `{unlock}`, or add --force"
    return None


def _hint_while_they_run(
    agents: tuple[AgentRisks, ...], kinds: set[RiskKind], running: Collection[tuple[str, str]], *, whole: bool
) -> str:
    own = [one for one in agents if (one.session, one.agent) in running]
    stop = f"`{_stopping(own, whole=whole)}`"
    if kinds != {RiskKind.PROCESS}:
        return f"stop what runs with {stop}, then commit; or add --force: that stops it and salvages its work"
    if len(own) < len(agents):
        return "let them end, or leave the folder; --force salvages the files and removes it all the same"
    them = "them" if len(agents) > 1 else "it"
    return f"stop {them} with {stop}; or add --force: that stops {them} and salvages what is left"


def _stopping(agents: Sequence[AgentRisks], *, whole: bool) -> str:
    """Return a command line that ends these agents, as one can paste it; of a session that is to go, all of them."""
    names = [one.session if whole else f"{one.agent}@{one.session}" for one in agents]
    return " && ".join(f"swarm stop {name}" for name in dict.fromkeys(names))
