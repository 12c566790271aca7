"""Prepare an agent's rules for ``guard.py``, once at the start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swarm.permissions.denials import tools_of
from swarm.permissions.guard import RULES
from swarm.permissions.rules import EDITORS, Rule, parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.programs.values import Launch


def files(launch: Launch, deny: Iterable[str], allow: Iterable[str] = (), *, unclear: str) -> dict[str, str]:
    """Return the file with the rules; always one, since an earlier start may have left another.

    Where there are rules, one more keeps the agent's editors away from this very file and what is beside it.
    """
    given = [parse_rule(text) for text in deny]
    own = Rule("Edit(the notes of swarm about this agent)", "Edit", f"/{launch.run_dir}/**")
    about = [tools_of(rule) for rule in given] + ([EDITORS] if given else [])  # not worth a look at every command
    made = {
        "root": str(launch.worktree),
        "unclear": unclear,
        "tools": sorted(frozenset[str]().union(*about)),
        "deny": [*given, own] if given else [],
        "allow": [parse_rule(text) for text in allow],
    }
    return {RULES: json.dumps(made)}
