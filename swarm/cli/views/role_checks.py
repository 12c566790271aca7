"""Checking roles: which ones, and what is found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit.errors import Refused, SwarmError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.programs.role_effects import Note
    from swarm.roles.find import RolePlaces
    from swarm.roles.role import Role


class Checked(NamedTuple):
    """What was found about one role.

    Attributes:
        source: its file; None when it was not found by its name.
        problems: why it cannot be used.
        notes: what of it has no effect.
    """

    name: str
    source: Path | None
    problems: tuple[SwarmError, ...] = ()
    notes: tuple[Note, ...] = ()


def check_all(which: Sequence[str], places: RolePlaces, directory: Path) -> tuple[Checked, ...]:
    """Check the named roles and files, or every role there is, and what is none only by its name."""
    from swarm.roles.find import misnamed, role_names

    found = [one for word in which for one in _within(word, directory)]
    if not found:
        found = [*role_names(places), *(str(path) for path in misnamed(places))]
    return tuple(_check(one, places, directory) for one in found)


def _within(what: str, directory: Path) -> list[str]:
    """Return the roles in a folder of roles; else what was named."""
    folder = directory / what
    if "/" not in what or not folder.is_dir() or any((folder / name).exists() for name in ("CLAUDE.md", "role.yaml")):
        return [what]
    roles = sorted(one for one in folder.iterdir() if one.is_dir() or one.suffix in (".yaml", ".yml"))
    return [str(one) for one in roles] or [what]


def _check(what: str, places: RolePlaces, directory: Path) -> Checked:
    from swarm.programs import role_effects
    from swarm.roles.find import check_file, find_role

    is_file = "/" in what or "." in what
    source = directory / what if is_file else None
    try:
        role: Role = check_file(source) if source is not None else find_role(what, places)
    except SwarmError as problem:
        return Checked(what, source, tuple(_single(problem)))
    notes = role_effects.notes(role.options) if is_file else role_effects.notes_of(role)
    return Checked(role.name, role.source, tuple(_refused(role)), notes=notes)


def _refused(role: Role) -> Iterator[SwarmError]:
    """Say what of its further settings Claude Code would refuse; the program is asked where it is installed."""
    from swarm.programs.claude.program import Claude

    options = role.options
    if options.settings and options.agent_type in ("", Claude.name) and not options.command:
        yield from Claude().settings_problems(options, os.environ)


def _single(problem: SwarmError) -> Iterator[SwarmError]:
    yield from problem.problems if isinstance(problem, Refused) else (problem,)
