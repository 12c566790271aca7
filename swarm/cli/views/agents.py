"""Sessions and agents for machines, and who does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.cli.text import iso, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm import AgentStatus, SessionStatus
    from swarm.cli.output import Output


def session_data(found: SessionStatus) -> dict[str, Any]:
    """Return a session for machines."""
    session = found.session
    return {
        "session": session.name,
        "base": session.base,
        "base_ref": session.base_ref,
        "created_at": iso(session.created_ms),
        "state": found.state,
        "workflow": session.workflow,
        "kind": session.kind,
        "parent": session.parent.address if session.parent else "",
        "pod": session.pod,
        "template": session.template,
        "swarm_dir": session.swarm_dir,
        "agents": [agent_data(one, session.name) for one in found.agents],
    }


def agent_data(one: AgentStatus, session: str) -> dict[str, Any]:
    """Return an agent for machines."""
    return {
        "name": one.agent.name,
        "role": one.agent.role,
        "session": session,
        "branch": one.agent.branch,
        "worktree": one.worktree,
        "program": one.agent.program,
        "pane": one.pane,
        "pid": one.pid,
        "state": one.status.state,
        "detail": one.status.detail,
        "since": iso(one.status.since_ms),
        "evidence": [
            {"source": e.source, "text": e.text, "at": iso(e.at_ms), "decides": e.decides} for e in one.status.evidence
        ],
        "head": one.head,
        "ahead": one.ahead,
        "dirty": one.dirty,
        "missing": one.missing,
        "unread": one.unread,
        "box": one.box or None,
        "held": one.held or None,
        "limits": one.limits,
        "outside": [note._asdict() for note in one.outside],
        "blocked": one.blocked,
        "socket": one.socket,
        "stale": one.stale,
        "ports": dict(one.agent.ports),
    }


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
