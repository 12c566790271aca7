"""Sessions and agents for machines, and who does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.cli.text import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm import AgentStatus, SessionStatus


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
        "blocked": one.blocked,
        "socket": one.socket,
        "stale": one.stale,
        "ports": dict(one.agent.ports),
    }


def stale(found: Sequence[SessionStatus]) -> Iterator[str]:
    """Say whose socket is stale, in a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for one in found:
        for agent in one.agents:
            if agent.stale:
                reasons.setdefault(agent.stale, []).append(f"{agent.agent.name}@{one.session.name}")
    return (f"stale: {', '.join(names)}: {reason}" for reason, names in reasons.items())
