"""What several commands show of agents, and the arguments by which they are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from swarm import State
from swarm.cli import completion
from swarm.cli.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm import SessionStatus
    from swarm.cli.output import Output

STATE_STYLES = {
    State.WAITING: "warn",
    State.FAILED: "bad",
    State.UNKNOWN: "dim",
    State.WORKING: "good",
    State.STARTING: "hint",
}
SessionName = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION|AGENT]",
        help="Only this session, or this agent.",
        autocompletion=completion.sessions,
        show_default=False,
    ),
]
Everywhere = Annotated[
    bool, typer.Option("--all", help="Also sessions made with another swarm directory.", show_default=False)
]
AgentName = Annotated[
    str,
    typer.Argument(
        metavar="AGENT[@SESSION]",
        help="Agent; name the session where several sessions have such an agent.",
        autocompletion=completion.agents,
        show_default=False,
    ),
]


def show_notes(output: Output, found: Sequence[SessionStatus], *, limits: bool) -> None:
    """Print what is to be said of agents below their table.

    Args:
        limits: also those of their boxes.
    """
    agents = [(one, f"{plain(one.agent.name)}@{plain(group.session.name)}") for group in found for one in group.agents]
    for one, who in agents:
        if one.held:
            output.label("warning", f"{who}: {plain(one.held)}", "warn")
        if any(note.named for note in one.outside):
            output.label("note", f"{who} may have written outside of its worktree: swarm why {who}", "warn")
    if limits and any(one.limits for one, _ in agents):
        from swarm.cli.views.boxes import by_limits  # most have none

        for line in by_limits(found):
            output.out(line, "dim")


def stale(found: Sequence[SessionStatus]) -> Iterator[str]:
    """Say whose socket is stale, in a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for one in found:
        for agent in one.agents:
            if agent.stale:
                reasons.setdefault(agent.stale, []).append(f"{agent.agent.name}@{one.session.name}")
    return (f"stale: {', '.join(names)}: {reason}" for reason, names in reasons.items())
