"""The deny rules of an agent as ``guard.py`` reads them at every tool call: understood once, at the start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from swarm.domain.permission_denials import tools_of
from swarm.domain.permission_rules import EDITORS, Rule, parse_rule
from swarm.guard import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.domain.panes import Launch
    from swarm.domain.role_fields import RoleOptions


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
    """Return the file with the rules; always one, since an earlier start may have left another.

    Where there are rules, one more keeps the agent's editors away from this very file and what is beside it.
    """
    texts = denied(launch.options)
    given = [parse_rule(text) for text in texts]
    own = Rule("Edit(the notes of swarm about this agent)", "Edit", f"/{launch.run_dir}/**")
    about = [tools_of(rule) for rule in given] + ([EDITORS] if given else [])  # not worth a look at every command
    made = {
        "root": str(launch.worktree),
        "unclear": str(launch.options.permissions.unclear),
        "tools": sorted(frozenset[str]().union(*about)),
        "deny": [*given, own] if given else [],
    }
    return {RULES: json.dumps(made)}
