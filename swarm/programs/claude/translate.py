"""A role's rules as Claude Code takes them in its settings: nearly all as they are written.

A rule that it would skip opens a dialog in its pane, so it is not given to it; swarm's own hook holds what is denied
anyway.  Rules for files it knows only as ``Edit`` and ``Read``, each for all tools of that kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.permissions.rules import EDITORS, READERS
from swarm.permissions.translation import Gap, Gaps, spaced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.permissions.rules import Rule, Rules

SKIPPED = "it takes no rule of that form"
_AS_EDIT = "as Edit, so for every tool that edits"
_AS_READ = "as Read, so for every tool that reads"


class Translation(NamedTuple):
    """Rules as texts for the program's settings, and notes on those that it reads otherwise."""

    allow: tuple[str, ...]
    deny: tuple[str, ...]
    gaps: Gaps


def translate(rules: Rules) -> Translation:
    """Translate rules into the program's language."""
    allowed = [_allowance(rule) for rule in rules.allow]
    kept = _kept(text for text, _ in allowed)
    gaps = tuple(gap for _, gap in allowed if gap is not None)
    return Translation(kept, _kept(map(_written, rules.deny)), Gaps(allow=gaps))


def _kept(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if _takes(text)))


def _allowance(rule: Rule) -> tuple[str, Gap | None]:
    """Return a rule's text, and the notes about it."""
    text, why = _written(rule), ""
    if rule.pattern is not None and rule.tool in EDITORS - {"Edit"}:
        text, why = f"Edit({rule.pattern})", _AS_EDIT
    elif rule.pattern is not None and rule.tool in READERS - {"Read"}:
        text, why = f"Read({rule.pattern})", _AS_READ
    if not _takes(text):
        return text, Gap(rule.text, SKIPPED)
    return text, Gap(rule.text, why, in_part=True) if why else None


def _written(rule: Rule) -> str:
    """Return a rule in the form that it understands: stars before an old ``:*`` would be letters to it."""
    pattern = rule.pattern or ""
    if rule.tool == "Bash" and pattern.endswith(":*") and "*" in pattern[:-2]:
        return f"Bash({spaced(pattern)})"
    return str(rule.text)


def _takes(text: str) -> bool:
    """Whether it would take a rule, and not skip it with a complaint."""
    if text.startswith("mcp__"):
        return True
    tool, opened, rest = text.partition("(")
    pattern = rest.removesuffix(")")
    if not tool[:1].isupper() or (opened and (len(pattern) - len(pattern.rstrip("\\"))) % 2):
        return False
    return pattern != ":*" if tool == "Bash" else tool not in EDITORS | READERS or ":*" not in pattern
