"""The namespace ``swarm.roles``: list, read, write and check roles; also outside of a repository."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit import files
from swarm.kit.errors import Refused, SwarmError
from swarm.project import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from swarm.programs.role_effects import Note
    from swarm.programs.rule_holds import RuleHold
    from swarm.roles.find import RolePlaces
    from swarm.roles.role import Role


class CheckedRole(NamedTuple):
    """The result of the check of one role.

    Attributes:
        source: its file; None when it was not found by its name.
        problems: why it cannot be used.
        notes: the parts that have no effect.
        rules: what holds each of its deny rules.
    """

    name: str
    source: Path | None
    problems: tuple[SwarmError, ...] = ()
    notes: tuple[Note, ...] = ()
    rules: tuple[RuleHold, ...] = ()


class Roles:
    """The roles of a repository, of the user, and those that come with swarm. Call it for all of them."""

    def __init__(self, places: RolePlaces, environ: Mapping[str, str]) -> None:
        self._places = places
        self._environ = environ

    def __repr__(self) -> str:
        return f"<Roles of {self._places.root or self._places.swarm_dir}>"

    @classmethod
    def around(cls, directory: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Roles:
        """Return the roles that count in a folder: of its repository, if it is in one, and the user's own."""
        from swarm.git.discover import discover
        from swarm.git.errors import NotARepo
        from swarm.project.swarm_dir import dirs
        from swarm.roles.find import RolePlaces

        env = dict(os.environ if environ is None else environ)
        start = Path(os.path.abspath(directory))
        try:
            root: Path | None = discover(start, env).root
        except NotARepo:
            root = None
        return cls(RolePlaces.standard(root, dirs.find_dir(environ=env, cwd=start)), env)

    @property
    def of_pods(self) -> Roles:
        """The roles as the agents of a pod find them: those of ``pods/roles`` first."""
        return Roles(replace(self._places, pod=True), self._environ)

    def __call__(self) -> tuple[Role, ...]:
        """Return all roles."""
        from swarm.roles.find import list_roles

        with files.os_errors("cannot read the roles"):
            return tuple(list_roles(self._places))

    def scan(self) -> tuple[tuple[Role, ...], tuple[SwarmError, ...]]:
        """Return all usable roles, and the problems of the others."""
        from swarm.roles.find import scan_roles

        roles, problems = scan_roles(self._places)
        return tuple(roles), tuple(problems)

    def get(self, name: str) -> Role:
        """Return a role by name.

        Raises:
            RoleNotFound
        """
        from swarm.roles.find import find_role

        with files.os_errors(f"cannot read the role {name}"):
            return find_role(names.check_name("role", name), self._places)

    def names(self) -> tuple[str, ...]:
        """Return the names of the roles, without reading them."""
        from swarm.roles.find import role_names

        return tuple(role_names(self._places))

    def hidden(self) -> Mapping[str, Sequence[Path]]:
        """Return, by the name of a role in small letters, the files of that name that it hides."""
        from swarm.roles.find import overridden

        return overridden(self._places)

    def is_shipped(self, source: Path) -> bool:
        """Whether a file is of a role that comes with swarm."""
        from swarm.roles.find import builtin_roles_dir

        return source.is_relative_to(builtin_roles_dir())

    def init(self, name: str, *, source: str | None = None, user: bool = False) -> Path:
        """Write a new role file that explains every key, and return it; never overwrite a file.

        Args:
            source: copy this role.
            user: write it into the user's swarm directory instead of the project's ``roles/``.

        Raises:
            RoleExists, RoleNotFound, InvalidName
        """
        from swarm.roles.init import write_role

        copied = self.get(source) if source else None
        return write_role(name, self._places, source=copied, private=user)

    def options(self, role: Role) -> dict[str, Any]:
        """Return a role's options, without its texts, as in its file."""
        from swarm.roles import options

        plain: dict[str, Any] = options.plain(role.options, whole=True)
        return plain

    def notes(self, role: Role) -> tuple[Note, ...]:
        """Return the parts of a role without effect in its program."""
        from swarm.programs import role_effects

        return tuple(role_effects.notes_of(role))

    def check(
        self, which: Sequence[str] = (), directory: str | os.PathLike[str] | None = None
    ) -> tuple[CheckedRole, ...]:
        """Check the named roles, files and folders of roles; without names all roles.

        Args:
            directory: where paths count from; default: the current one.
        """
        from swarm.roles.find import misnamed, role_names

        start = Path.cwd() if directory is None else Path(directory)
        found = [one for word in which for one in _within(word, start)]
        if not found:
            found = [*role_names(self._places), *(str(path) for path in misnamed(self._places))]
        return tuple(self._check(one, start) for one in found)

    def _check(self, what: str, directory: Path) -> CheckedRole:
        from swarm.programs import role_effects
        from swarm.programs.rule_holds import rule_holds
        from swarm.roles.find import check_file, find_role

        is_file = "/" in what or "." in what
        source = directory / what if is_file else None
        try:
            role: Role = check_file(source) if source is not None else find_role(what, self._places)
        except SwarmError as problem:
            return CheckedRole(what, source, tuple(_single(problem)))
        notes = role_effects.notes(role.options) if is_file else role_effects.notes_of(role)
        refused = tuple(self._refused(role))
        return CheckedRole(role.name, role.source, refused, notes, rule_holds(role.options) if not refused else ())

    def _refused(self, role: Role) -> Iterator[SwarmError]:
        """Yield the further settings that an installed program would refuse."""
        from swarm.programs.registry import PROGRAMS, program

        options = role.options
        if options.settings and not options.command:
            for name in (options.agent_type,) if options.agent_type else PROGRAMS:
                yield from program(name).settings_problems(options, self._environ)


def _within(what: str, directory: Path) -> list[str]:
    """Return the roles in a folder of roles; else the given name."""
    folder = directory / what
    if "/" not in what or not folder.is_dir() or any((folder / name).exists() for name in ("CLAUDE.md", "role.yaml")):
        return [what]
    roles = sorted(one for one in folder.iterdir() if one.is_dir() or one.suffix in (".yaml", ".yml"))
    return [str(one) for one in roles] or [what]


def _single(problem: SwarmError) -> Iterator[SwarmError]:
    yield from problem.problems if isinstance(problem, Refused) else (problem,)
