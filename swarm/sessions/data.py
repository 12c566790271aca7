"""Sessions and agents as data for machines: what ``--json`` prints, and what the live model compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit.words import iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.sessions.values import AgentStatus, SessionStatus


def session_data(found: SessionStatus) -> dict[str, Any]:
    """Return a session for machines."""
    return {**record_data(found), "agents": [agent_data(one, found.session.name) for one in found.agents]}


def record_data(found: SessionStatus) -> dict[str, Any]:
    """Return a session without its agents."""
    session = found.session
    return {
        "session": session.name,
        "base": session.base,
        "base_ref": session.base_ref,
        "created_at": iso(session.created_ms),
        "state": str(found.state),
        "workflow": session.workflow,
        "kind": session.kind,
        "parent": session.parent.address if session.parent else "",
        "pod": session.pod,
        "template": session.template,
        "swarm_dir": session.swarm_dir,
    }


def agent_data(one: AgentStatus, session: str) -> dict[str, Any]:
    """Return an agent for machines."""
    return {
        "name": one.agent.name,
        "role": one.agent.role,
        "session": session,
        "branch": one.agent.branch,
        "worktree": str(one.worktree),
        "program": one.agent.program,
        "pane": one.pane,
        "pid": one.pid,
        "state": str(one.status.state),
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
        "limits": dict(one.limits) if one.limits is not None else None,
        "outside": [note._asdict() for note in one.outside],
        "blocked": one.blocked,
        "socket": one.socket,
        "stale": one.stale,
        "ports": dict(one.agent.ports),
    }


#: Fields that are only known of a worktree that was looked at.
_OF_TREES = ("head", "ahead", "dirty", "missing", "held")


def table(found: Iterable[SessionStatus], *, trees: bool = True) -> dict[tuple[str, str], dict[str, Any]]:
    """Return sessions and agents, each with its fields, by ("session", name) and ("agent", "name@session").

    Args:
        trees: their worktrees were looked at.
    """
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for group in found:
        made["session", group.session.name] = record_data(group)
        for one in group.agents:
            fields = agent_data(one, group.session.name)
            if not trees:
                fields = {name: value for name, value in fields.items() if name not in _OF_TREES}
            made["agent", f"{one.agent.name}@{group.session.name}"] = fields
    return made
