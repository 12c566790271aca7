"""``swarm sandbox …``: what this machine can do for boxes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from swarm.cli.output import Answer, Output
from swarm.cli.verb import Run, group, verb

if TYPE_CHECKING:
    import typer

    from swarm import BoxCheck

app = group("sandbox", "Check whether this machine can make boxes for agents.", "swarm sandbox check")


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(
    app,
    "check",
    attempt="cannot check for boxes",
    examples="swarm sandbox check\nswarm sandbox check --json",
)
def check(run: Run) -> Answer:  # noqa: ARG001  # every verb has it
    """Make a box and look whether it holds; if it cannot be made, show the cause and the way out.

    A box keeps a program to one folder: no home, no network, no other process. `swarm start` does not use it yet.
    Exits with 5 if this machine cannot make one.
    """
    from swarm import Sandbox

    found = Sandbox().check()
    return Answer(asdict(found), lambda output: _show(output, found), exit_code=0 if found.available else 5)


def _show(output: Output, found: BoxCheck) -> None:
    if found.available:
        output.item("ok    ", f"this machine can make boxes, by {found.by}", "good")
    else:
        output.item("no    ", f"this machine cannot make boxes: {found.cause}", "bad")
        output.item("      fix: ", found.hint, command_last=True)
    for note in found.notes:
        output.item("note  ", note, "warn")
