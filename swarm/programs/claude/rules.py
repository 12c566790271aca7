"""The deny rules of an agent: the role's, and those in its further settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.permissions.rules import parse_rule
from swarm.programs import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.programs.values import Launch
    from swarm.roles.options import RoleOptions


def denied(options: RoleOptions) -> tuple[str, ...]:
    """Return the deny rules of a role, those in its further settings included."""
    further: Any = options.settings.get("permissions")
    also = further.get("deny") if isinstance(further, dict) else None
    texts = [*options.permissions.deny, *(also if isinstance(also, list) else ())]
    return tuple(dict.fromkeys(text for text in texts if isinstance(text, str)))


def problems(options: RoleOptions) -> Iterator[tuple[str, str]]:
    """Give each deny rule that is none, and why."""
    for text in denied(options):
        try:
            parse_rule(text)
        except ValueError as error:
            yield text, str(error)


def files(launch: Launch) -> dict[str, str]:
    """Return the file with the rules for swarm's hook."""
    return guarded.files(launch, denied(launch.options), unclear=str(launch.options.permissions.unclear))
