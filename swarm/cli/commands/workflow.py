"""``swarm workflow …``: the kinds of work that can be started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import place
from swarm.cli.verb import Run, group, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Workflow

app = group("workflow", "List and show the predefined teams of `swarm start --workflow`.", "swarm workflow list")


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(app, "list", attempt="cannot list the workflows", examples="swarm workflow list")
def list_(run: Run) -> Answer:
    """List the workflows and their roles."""
    found = run.open().workflows()
    return Answer({"workflows": [_data(one) for one in found]}, lambda output: _show_list(output, found))


def _show_list(output: Output, found: Sequence[Workflow]) -> None:
    rows = [(one.name, ",".join(one.roles), one.description) for one in found]
    output.table((Column("NAME"), Column("ROLES"), Column("DESCRIPTION")), rows)


@verb(app, "show", attempt="cannot show workflow {name}", examples="swarm workflow show implement")
def show(
    run: Run, name: Annotated[str, typer.Argument(metavar="NAME", help="Name or alias.", show_default=False)]
) -> Answer:
    """Show one workflow, with the prompt for its agents."""
    one = run.open().workflows.get(name)
    return Answer(_data(one), lambda output: _show(output, one))


def _data(one: Workflow) -> dict[str, Any]:
    return {
        "name": one.name,
        "description": one.description,
        "roles": one.roles,
        "aliases": one.aliases,
        "task": one.task,
        "source": one.source,
    }


def _show(output: Output, one: Workflow) -> None:
    output.pairs(
        [
            ("name", one.name),
            ("aliases", ", ".join(one.aliases) or "-"),
            ("roles", ", ".join(one.roles)),
            ("description", one.description),
            ("file", place(one.source)),
        ],
        prose=("description",),
    )
    output.out()
    output.prose(one.task, "  ")
