"""``swarm validate``: look for mistakes in everything that people and swarm wrote down."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import typer

from swarm.cli.output import Answer, Output
from swarm.cli.text import count
from swarm.cli.verb import Run, verb
from swarm.git.errors import NotARepo
from swarm.kit.errors import EXIT_USAGE, ConfigProblem, Refused, StateDirProblem, SwarmError


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(root, "validate", attempt="cannot validate", examples="swarm validate")(validate)


def validate(run: Run) -> Answer:
    """Check configuration, roles and session records.

    Shows every problem, unfinished operations included. Changes nothing.
    """
    root = _root(run)
    checked = {"configuration": _config(root), "roles": _roles(run, root)}
    if root is not None and not _is_foreign(root):
        checked["sessions"] = _sessions(root)
        checked["operations"] = _unfinished(root)
    found = {area: list(_single(problems)) for area, problems in checked.items()}
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
        where = "" if root is not None else "; not in a repository, so only your own files were checked"
        output.err(f"{summary} found in {', '.join(found)}{where}", "bad" if problems else "good")

    if not problems:
        return Answer(data, show)
    return Answer(data, show, errors=[p.as_dict() for p in problems], exit_code=EXIT_USAGE, status="error")


def own_hint(problem: SwarmError) -> str:
    """Return a problem's hint, unless it is to look for all problems: that is what was just done."""
    return "" if problem.hint == ConfigProblem.default_hint else problem.hint


def _root(run: Run) -> Path | None:
    from swarm.git.discover import discover

    try:
        return discover(run.directory, dict(os.environ)).root
    except NotARepo:
        return None


def _is_foreign(root: Path) -> bool:
    from swarm.kit import files

    try:
        files.refuse_foreign(root / ".swarm")
    except SwarmError:  # the configuration's problem says so
        return True
    return False


def _single(problems: Iterator[SwarmError]) -> Iterator[SwarmError]:
    for problem in problems:
        yield from problem.problems if isinstance(problem, Refused) else (problem,)


def _config(root: Path | None) -> Iterator[SwarmError]:
    from swarm.project import dirs
    from swarm.project.config.file import load_settings

    project = None if root is None else root / ".swarm"
    try:
        load_settings(project, user_dir=dirs.user_dir(os.environ), environ=os.environ)
    except SwarmError as error:
        yield error


def _roles(run: Run, root: Path | None) -> Iterator[SwarmError]:
    from swarm.project import dirs
    from swarm.roles.find import RolePlaces, scan_roles

    try:
        places = RolePlaces.standard(root, dirs.find_dir(environ=os.environ, cwd=run.directory))
        yield from scan_roles(places)[1]
    except SwarmError as error:
        yield error


def _sessions(root: Path) -> Iterator[SwarmError]:
    from swarm.kit import files
    from swarm.project.layout import Layout
    from swarm.project.sessions import Sessions

    store = Sessions(Layout(root))
    for name in store.names():
        try:
            with files.os_errors(f"cannot read the record of session {name}"):
                store.get(name)
        except SwarmError as error:
            yield error


def _unfinished(root: Path) -> Iterator[SwarmError]:
    from swarm.project.journal import Journal
    from swarm.project.layout import Layout

    journal = Journal(Layout(root))
    for operation in journal.unfinished():
        try:
            record = journal.read(operation)
        except SwarmError as error:
            yield error
            continue
        what = f"{record.get('verb', '?')} of {record.get('session') or '?'}"
        hint = "it may still be running; if not, `swarm recover` brings it to an end"
        yield StateDirProblem(f"operation {operation} ({what}) is not finished", hint=hint)
