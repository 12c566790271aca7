"""``swarm doctor``: problems, and the commands that fix them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.cli.output import Answer, Output
from swarm.cli.text import count
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    import typer

    from swarm import Check

_MARKS = {"ok": ("ok", "good"), "warn": ("note", "warn"), "bad": ("BAD", "bad")}


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(root, "doctor", attempt="cannot look around", examples="swarm doctor\nswarm doctor --json")(doctor)


def doctor(run: Run) -> Answer:
    """Check git, tmux, agent programs, permissions and leftovers.

    Shows a fixing command for each problem. Changes nothing.
    """
    found = run.open().doctor()
    bad = any(one.state == "bad" for one in found)
    return Answer({"checks": found}, lambda output: _show(output, found), exit_code=1 if bad else 0)


def _show(output: Output, found: tuple[Check, ...]) -> None:
    for one in found:
        word, style = _MARKS[one.state]
        output.item(f"{word:4}  ", f"{one.name}: {one.text}", style)
        if one.hint and one.state != "ok":
            output.item("      fix: ", one.hint, command_last=True)
    wrong = sum(one.state != "ok" for one in found)
    output.err("everything is fine" if not wrong else f"{count(wrong, 'thing')} to look at")
