"""``swarm recover``: finish or roll back interrupted operations."""

from __future__ import annotations

import typer

from swarm.cli.output import Answer, Output
from swarm.cli.text import plain
from swarm.cli.verb import Run, verb


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(root, "recover", attempt="cannot recover", examples="swarm recover")(recover)


def recover(run: Run) -> Answer:
    """Finish or roll back operations that a crash interrupted.

    Every changing command does this first.
    """
    report = run.open().recover()

    def show(output: Output) -> None:
        for done, items in (("rolled back", report.rolled_back), ("finished", report.finished)):
            for item in items:
                output.out(f"{done}: {plain(item)}", "good")
        for note in report.notes:
            output.out(plain(note), "good")
        if not report.rolled_back and not report.finished and not report.notes:
            output.out("nothing to recover")

    data = {"rolled_back": report.rolled_back, "finished": report.finished, "notes": report.notes}
    return Answer(data, show)
