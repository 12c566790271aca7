"""``swarm init``: make a swarm directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm.api.known import main_checkout
from swarm.cli.output import Answer, Output
from swarm.cli.text import place, plain
from swarm.cli.verb import Run, verb
from swarm.project.layout import STATE_DIR

_PRIVATE = 0o700
_OPEN = 0o755


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
    from swarm.project.swarm_dir import dirs

    root = main_checkout(run.directory)
    ours = None if root is None else root / STATE_DIR
    target = directory or (None if global_ else "." if ours is None else str(ours))
    is_ours = ours is not None and target is not None and run.directory / target == ours
    made = dirs.init_dir(target, global_=global_, mode=_PRIVATE if is_ours else _OPEN, cwd=run.directory)
    if is_ours:
        _hide(made)

    def show(output: Output) -> None:
        output.out(f"made the swarm directory {plain(str(made))}", "good")

    return Answer({"path": made}, show, next=(f"next: edit {place(made / 'config.yaml', quoted=True)}",))


def _hide(folder: Path) -> None:
    """Hide the folder from git, as the first change would."""
    from swarm.kit import files
    from swarm.roles.find import ignore_template

    if not files.exists(folder / ".gitignore"):
        files.write_atomic(folder / ".gitignore", ignore_template())
