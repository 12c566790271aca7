"""What of a deny rule a box can hold: hosts, and files that the rule names without stars."""

from __future__ import annotations

from typing import NamedTuple

from swarm.permissions.rules import EDITORS, READERS, Rule

TREE, HOME, MACHINE = "tree", "home", "machine"
_TOP_ALONE = "at the top of its worktree alone"
_THERE = "where it is there when its program starts"
_NOT_IN_GIT = f"{_THERE}, and is not in git"
_STARS = "a box knows no patterns"
_NO_FILE = "a box knows files and hosts alone"


class InBox(NamedTuple):
    """What a box makes of a deny rule.

    Attributes:
        host: of a rule about one: the pattern of hosts that the proxy refuses.
        base: of a rule about files: where its path begins; `TREE`, `HOME` or `MACHINE`.
        path: relative to *base*; up to the first star.
        edits: files can be read, and not changed.
        holds: whether a box holds it.
        note: what of it alone; or why it does not.
    """

    host: str = ""
    base: str = ""
    path: str = ""
    edits: bool = False
    holds: bool = False
    note: str = ""


def in_box(rule: Rule) -> InBox:
    """Return what a box makes of a deny rule."""
    if rule.pattern is None or rule.tool not in EDITORS | READERS | {"WebFetch"}:
        return InBox(note=_NO_FILE)
    if rule.tool == "WebFetch":
        return InBox(host=rule.pattern.removeprefix("domain:").lower(), holds=True)
    edits = rule.tool in EDITORS
    base, rest = _base(rule.pattern)
    parts = [part for part in rest.removesuffix("/**").split("/") if part not in ("", ".")]
    plain = next((n for n, part in enumerate(parts) if "*" in part or "?" in part), len(parts))
    path = "/".join(parts[:plain])
    if base != TREE:
        return InBox("", base, path, edits, holds=True)
    if plain < len(parts) or not parts:
        return InBox("", base, "", edits, note=_STARS)
    anywhere = "/" not in rest.rstrip("/")
    note = _TOP_ALONE if anywhere else _THERE if edits else _NOT_IN_GIT
    return InBox("", base, path, edits, holds=True, note=note)


def _base(pattern: str) -> tuple[str, str]:
    """Return where a pattern begins, and the rest of it; as `paths` reads it."""
    if pattern.startswith("//"):
        return MACHINE, pattern[1:]
    if pattern == "~" or pattern.startswith("~/"):
        return HOME, "/" + pattern[2:]
    return TREE, pattern.removeprefix(".") if pattern.startswith("./") else pattern
