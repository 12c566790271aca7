"""``swarm log``: the operations in this repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import local_time_of, plain
from swarm.cli.verb import Run, verb


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(root, "log", attempt="cannot show the log", examples="swarm log\nswarm log feature-x --json")(log)


def log(
    run: Run,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="Only operations on this session.",
            autocompletion=completion.sessions,
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """List the operations in this repository, oldest first, with time, user and outcome."""
    entries = [entry for entry in run.open().operations() if session is None or _concerns(entry, session)]

    def show(output: Output) -> None:
        if not entries:
            what = f"no operations on session {plain(session)}" if session else "no operations yet"
            output.err(what if session else f"{what}; begin with: swarm start SESSION --roles developer")
            return
        columns = (
            Column("TIME", keep="all"),
            Column("WHAT"),
            Column("SESSION", 1),
            Column("WHO", 2),
            Column("OUTCOME"),
            Column("OPERATION", 3),
        )
        rows = [
            (
                local_time_of(_word(entry, "time")),
                _word(entry, "verb"),
                _word(entry, "session"),
                _word(entry, "actor"),
                _outcome(entry),
                _word(entry, "operation"),
            )
            for entry in entries
        ]
        output.table(columns, rows)

    return Answer({"operations": list(entries)}, show)


def _concerns(entry: Mapping[str, object], session: str) -> bool:
    """Whether an operation was about a session; a cleanup names several."""
    return session.casefold() in str(entry.get("session", "")).casefold().split(",")


def _word(entry: object, key: str) -> str:
    return str(entry.get(key) or "-") if isinstance(entry, dict) else "-"


def _outcome(entry: object) -> Cell:
    text = _word(entry, "outcome")
    return Cell(text, "" if text == "done" else "warn")
