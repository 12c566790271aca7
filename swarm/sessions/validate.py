"""Look for mistakes in everything that people and swarm wrote down; changes nothing."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from swarm.git.discover import discover
from swarm.git.errors import NotARepo
from swarm.kit import files
from swarm.kit.errors import Refused, StateDirProblem, SwarmError
from swarm.project.config.file import load_settings
from swarm.project.journal import Journal
from swarm.project.layout import Layout
from swarm.project.sessions import Sessions
from swarm.project.swarm_dir import dirs
from swarm.roles.find import RolePlaces, scan_roles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def validate(directory: Path, environ: Mapping[str, str]) -> tuple[Path | None, dict[str, list[SwarmError]]]:
    """Return the repository around a folder, and the problems of each area; without one only the user's own files."""
    root = _root(directory, environ)
    checked = {"configuration": _config(directory, root, environ), "roles": _roles(directory, root, environ)}
    checked["pods"] = _pods(directory, root, environ)
    if root is not None and not _is_foreign(root):
        checked["sessions"] = _sessions(root)
        checked["operations"] = _unfinished(root)
    return root, {area: list(_single(problems)) for area, problems in checked.items()}


def _root(directory: Path, environ: Mapping[str, str]) -> Path | None:
    try:
        return discover(directory, dict(environ)).root
    except NotARepo:
        return None


def _is_foreign(root: Path) -> bool:
    try:
        files.refuse_foreign(root / ".swarm")
    except SwarmError:  # the configuration's problem says so
        return True
    return False


def _single(problems: Iterator[SwarmError]) -> Iterator[SwarmError]:
    for problem in problems:
        yield from problem.problems if isinstance(problem, Refused) else (problem,)


def _config(directory: Path, root: Path | None, environ: Mapping[str, str]) -> Iterator[SwarmError]:
    project, found = None if root is None else root / ".swarm", None
    with contextlib.suppress(SwarmError):  # the look for roles says so
        found = dirs.find_dir(environ=environ, cwd=directory)
    try:
        load_settings(project, user_dir=dirs.user_dir(environ), environ=environ, swarm_dir=found)
    except SwarmError as error:
        yield error


def _roles(directory: Path, root: Path | None, environ: Mapping[str, str]) -> Iterator[SwarmError]:
    try:
        places = RolePlaces.standard(root, dirs.find_dir(environ=environ, cwd=directory))
        yield from scan_roles(places)[1]
    except SwarmError as error:
        yield error


def _pods(directory: Path, root: Path | None, environ: Mapping[str, str]) -> Iterator[SwarmError]:
    from swarm.roles.pods import find

    with contextlib.suppress(SwarmError):  # the look for roles says so
        places = RolePlaces.standard(root, dirs.find_dir(environ=environ, cwd=directory))
        yield from find.scan(places)[1]


def _sessions(root: Path) -> Iterator[SwarmError]:
    store = Sessions(Layout(root))
    for name in store.names():
        try:
            with files.os_errors(f"cannot read the record of session {name}"):
                store.get(name)
        except SwarmError as error:
            yield error


def _unfinished(root: Path) -> Iterator[SwarmError]:
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
