"""Deny rules of a role that its agent's box holds: files are hidden or cannot be changed, hosts are refused.

What lies outside of the box needs nothing: it is not there.  Of what the box shows, a rule for reading hides, and one
for editing fixes, what is there when the program starts.  An agent cannot move it away: each folder above it, up to the
worktree, is mounted onto itself, and what is mounted cannot be renamed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit import files
from swarm.permissions.boxed import HOME, MACHINE, TREE, in_box
from swarm.permissions.rules import parse_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from swarm.permissions.boxed import InBox
    from swarm.sandbox.values import Box

#: In the folder of a box: a file that nobody in it may read.
_CLOSED = "closed"
_LINKED = "there is a link on the way to it"
_ABSENT = "it was not there when its program started"
_IN_GIT = "it is in git, whose objects it reads"
_SHARED = "another agent works in the same worktree"
_SHOWN = "the box shows {} of it"


class Held(NamedTuple):
    """One deny rule of an agent in a box.

    Attributes:
        rule: as written.
        by_box: whether the box holds it.
        note: what of it alone; or why it does not.
    """

    rule: str
    by_box: bool
    note: str = ""


class Covered(NamedTuple):
    """What a box does for an agent's deny rules.

    Attributes:
        options: bubblewrap's, after all that the box shows.
        hosts: patterns that the proxy refuses.
        held: all rules.
    """

    options: tuple[str, ...]
    hosts: tuple[str, ...]
    held: tuple[Held, ...]


class Mine(NamedTuple):
    """What belongs to an agent in a box.

    Attributes:
        base: the folder of its box.
        home: of the user, whom rules mean by ``~``.
        shared: another agent works in its worktree, now: that could exchange what is looked at for a link.
        tracked: whether git has a path of the worktree, or something below it.
    """

    base: Path
    home: str
    shared: bool
    tracked: Callable[[str], bool]


def hosts_of(deny: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of hosts that are denied."""
    return tuple(found.host for found in (in_box(parse_rule(text)) for text in deny) if found.host)


def covered(box: Box, deny: Iterable[str], mine: Mine) -> Covered:
    """Return what a box does for deny rules; nothing that its agent made is followed."""
    made: list[str] = []
    held = []
    for text in dict.fromkeys(deny):
        found = in_box(parse_rule(text))
        if found.base:
            options, one = _file(box, text, found, mine)
            made += options
            held.append(one)
        else:
            held.append(Held(text, found.holds, found.note))
    return Covered(tuple(made), hosts_of(deny), tuple(held))


def _file(box: Box, text: str, found: InBox, mine: Mine) -> tuple[list[str], Held]:
    if found.base == TREE and not found.holds:
        return [], Held(text, by_box=False, note=found.note)
    begin = {TREE: box.tree, HOME: mine.home, MACHINE: "/"}[found.base]
    path = os.path.join(begin, found.path) if found.path else begin
    inside = next((one for one in _shown(box, edits=found.edits) if path.startswith(f"{one}/")), "")
    below = [one for one in _shown(box, edits=found.edits) if one == path or one.startswith(f"{path.rstrip('/')}/")]
    if not inside:
        return [], Held(text, by_box=not below, note=_SHOWN.format(", ".join(below)) if below else "")
    against = _against(box, path, inside, mine, edits=found.edits)
    if against:
        return [], Held(text, by_box=False, note=against)
    above = [word for one in _above(path, inside) for word in ("--bind", one, one)] if inside == box.tree else []
    return [*above, *_cover(path, mine.base, edits=found.edits)], Held(text, by_box=True, note=found.note)


def _against(box: Box, path: str, inside: str, mine: Mine, *, edits: bool) -> str:
    """Return why something that a box shows cannot be covered."""
    if inside == box.tree and mine.shared:
        return _SHARED
    if os.path.realpath(path) != os.path.join(os.path.realpath(inside), os.path.relpath(path, inside)):
        return _LINKED
    if not os.path.lexists(path):
        return _ABSENT
    hidden = not edits and inside == box.tree
    return _IN_GIT if hidden and mine.tracked(os.path.relpath(path, inside)) else ""


def _shown(box: Box, *, edits: bool) -> tuple[str, ...]:
    """Return what a box shows of the machine to read, or to change."""
    if edits:
        return (box.tree, *box.read_write)
    shown = (one.target for one in box.system if one.option != "--symlink")
    return (box.tree, *box.read_write, *box.read_only, *shown)


def _above(path: str, top: str) -> Iterator[str]:
    """Yield the folders between *top* and a path, the outermost first."""
    parts = os.path.relpath(path, top).split("/")[:-1]
    for number in range(len(parts)):
        yield "/".join((top, *parts[: number + 1]))


def _cover(path: str, base: Path, *, edits: bool) -> tuple[str, ...]:
    if edits:
        return ("--ro-bind", path, path)
    if os.path.isdir(path):
        return ("--perms", "0000", "--tmpfs", path, "--remount-ro", path)
    closed = base / _CLOSED
    if not files.exists(closed):
        files.write_new(closed, b"", 0)
    return ("--ro-bind", str(closed), path)
