"""What changed outside of an agent's worktree, in words that accuse nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.cli.text import age, place, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Outside
    from swarm.cli.output import Output

_SHOWN = 5


def show_outside(output: Output, notes: Sequence[Outside]) -> None:
    """Print the notes, the newest first."""
    output.out()
    output.out("changed outside of its worktree during its turns, by it or by somebody else:", "heading")
    for note in notes:
        where = f"worktree of {plain(note.owner)}" if note.owner else "main checkout"
        output.item("  ", f"{where} ({place(note.tree)}), {age(note.at_ms)} ago")
        for file in note.files[:_SHOWN]:
            said = "; its conversation names it" if file in note.named else ""
            output.item("    ", f"{file}{said}", "warn" if said else "")
        left = len(note.files) - _SHOWN + note.more
        if left > 0:
            output.item("    ", f"and {left} more")
        if note.others:
            output.item("    ", f"at work in that time, too: {', '.join(note.others)}")
