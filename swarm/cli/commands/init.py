"""``swarm init``: make a swarm directory."""

from __future__ import annotations

from typing import Annotated

import typer

from swarm.cli.output import Answer, Output
from swarm.cli.text import place, plain
from swarm.cli.verb import Run, verb


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "init",
        attempt="cannot make a swarm directory",
        examples="""
        swarm init
        swarm init --global
        """,
    )(init)


def init(
    run: Run,
    directory: Annotated[
        str | None,
        typer.Argument(
            metavar="[DIR]",
            help="The folder; default: .swarm of the repository, outside of one the current folder.",
            show_default=False,
        ),
    ] = None,
    global_: Annotated[
        bool, typer.Option("--global", help="Make the user's own, ~/.swarm.", show_default=False)
    ] = False,
) -> Answer:
    """Create a swarm directory.

    Its config.yaml lists every setting. A repository needs no swarm directory: the first changing command creates
    the folders.
    """
    from swarm import Config

    made = Config.init(directory, user=global_, around=run.directory)

    def show(output: Output) -> None:
        output.out(f"made the swarm directory {plain(str(made))}", "good")

    return Answer({"path": made}, show, next=(f"next: edit {place(made / 'config.yaml', quoted=True)}",))
