"""``swarm validate``: look for mistakes in everything that people and swarm wrote down."""

from __future__ import annotations

from typing import Annotated

import typer

from swarm import ConfigProblem, Services, SwarmError, UsageProblem
from swarm.cli.output import Answer, Output
from swarm.cli.text import count
from swarm.cli.verb import Run, verb


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "validate",
        attempt="cannot validate",
        examples="swarm validate\nswarm validate --all\nswarm validate reviewer.yaml",
    )(validate)


def validate(
    run: Run,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="Only this file of a served agent.", show_default=False)
    ] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Also the files of all served agents.", show_default=False)
    ] = False,
) -> Answer:
    """Check configuration, roles and session records.

    Shows every problem, unfinished operations included. Changes nothing.
    """
    from swarm import Config

    if file is not None and all:
        raise UsageProblem("both a file and --all are given", hint="give one of them")
    if file is None:
        root, found = Config.validate(run.directory)
    else:
        root, found = None, Services.check_file(run.directory / file)
    if all:
        found["agents"] = [one for several in run.open().services.validate().values() for one in several]
    problems = [problem for several in found.values() for problem in several]
    data = {
        "root": root,
        "checked": list(found),
        "problems": [{"area": area, **one.as_dict()} for area, several in found.items() for one in several],
    }

    def show(output: Output) -> None:
        for one in problems:
            output.item("", f"{one.message} ({one.code})")
            if own_hint(one) and not output.quiet:
                output.item("    hint: ", one.hint, "hint", command_last=True)
        summary = count(len(problems), "problem") if problems else "no problems"
        where = (
            "" if root is not None or file is not None else "; not in a repository, so only your own files were checked"
        )
        output.err(f"{summary} found in {', '.join(found)}{where}", "bad" if problems else "good")

    if not problems:
        return Answer(data, show)
    return Answer(data, show, errors=[p.as_dict() for p in problems], exit_code=UsageProblem.exit_code, status="error")


def own_hint(problem: SwarmError) -> str:
    """Return a problem's hint, except the hint to run this very command."""
    return "" if problem.hint == ConfigProblem.default_hint else problem.hint
