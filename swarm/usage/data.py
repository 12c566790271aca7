"""Reports as data for machines: what ``--json`` prints, and what servers answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit.words import iso

if TYPE_CHECKING:
    from swarm.usage.values import AgentUsage, ModelUsage, UsageReport


def usage_data(report: UsageReport) -> dict[str, Any]:
    """Return a report for machines."""
    return {
        "agents": [_agent_data(one) for one in report.agents],
        "models": [_model_data(one) for one in report.models],
        "total": {**_model_data(report.total, named=False), "minutes": round(report.minutes, 2)},
        "prices_as_of": report.prices_as_of,
        "unpriced": list(report.unpriced),
    }


def _agent_data(one: AgentUsage) -> dict[str, Any]:
    return {
        "session": one.session,
        "agent": one.agent,
        "role": one.role,
        "program": one.program,
        "recorded": one.recorded,
        "minutes": round(one.minutes, 2),
        "created_at": iso(one.created_ms),
        "removed_at": iso(one.removed_ms),
        "models": [_model_data(model) for model in one.models],
        "total": _model_data(one.total, named=False),
    }


def _model_data(one: ModelUsage, *, named: bool = True) -> dict[str, Any]:
    return {
        **({"model": one.model} if named else {}),
        "input": one.input,
        "output": one.output,
        "cache_read": one.cache_read,
        "cache_write": one.cache_write,
        "tokens": one.tokens,
        "requests": one.requests,
        "cost": None if one.cost is None else round(one.cost, 6),
    }
