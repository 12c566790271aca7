"""The limits of boxes, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.words import show_bytes
from swarm.cli.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from swarm import SessionStatus

_HELD = {"cgroup": "for all together", "process": "for each process"}
_MIB = 1 << 20


def limits_words(limits: Mapping[str, int | str], *, used: bool = True) -> str:
    """Return the limits of a box in a line.

    Args:
        used: also say how much is used.
    """
    return ", ".join(_words(limits, used=used)) or "none"


def _words(limits: Mapping[str, int | str], *, used: bool) -> Iterator[str]:
    if limits["processes"]:
        yield f"{limits['processes']} processes"
    if limits["memory"]:
        yield f"memory {show_bytes(int(limits['memory']))} {_HELD.get(str(limits['memory_by']), '')}".rstrip()
    else:
        yield "no limit of memory"
    if limits["tmp"]:
        yield f"/tmp {show_bytes(int(limits['tmp']))}"  # noqa: S108  # the box's own
    if limits["disk"]:
        taken = f" ({int(limits['disk_used']) / _MIB:,.0f} MiB used)" if used and limits["disk_used"] else ""
        yield f"disk {show_bytes(int(limits['disk']))}{taken}"
    else:
        yield "no limit of the disk"
    if limits["messages"]:
        yield f"{limits['messages']} messages an hour"


def by_limits(found: Sequence[SessionStatus]) -> Iterator[str]:
    """Say the limits of boxes, in a line for all agents that have the same."""
    agents: dict[str, list[str]] = {}
    for one in found:
        for agent in one.agents:
            if agent.limits is not None:
                words = limits_words(agent.limits, used=False)
                agents.setdefault(words, []).append(f"{plain(agent.agent.name)}@{plain(one.session.name)}")
    return (f"limits of {', '.join(names)}: {words}" for words, names in agents.items())
