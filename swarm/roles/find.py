"""Find roles by name in their folders.

The first place that has the role wins::

    <root>/roles/             the project's own, in git
    <root>/.swarm/roles/      the project's, private
    <swarm dir>/roles/        the user's
    <package>/builtin_roles/  shipped

In each a role is ``<role>/CLAUDE.md``, beside which a ``role.yaml`` may give further keys, or it is
``<role>.yaml`` with the instructions inside.  A broken role is an error and never lets the next place
answer: the agent would silently be told something else.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit import files as fsio
from swarm.kit import textfile
from swarm.kit.errors import ConfigProblem, SwarmError, SymlinkInTheWay, raise_all
from swarm.kit.words import did_you_mean
from swarm.project.errors import InvalidName, ReservedName
from swarm.project.names import ROLES_DIR, check_name
from swarm.roles.errors import RoleNotFound
from swarm.roles.role import Role, RoleKind, first_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.kit.yaml import Table

INSTRUCTIONS = "CLAUDE.md"
EXTRAS = "role.yaml"
#: Roles of pods, below a swarm directory.
POD_ROLES = "pods/roles"
SUFFIX = ".yaml"
#: Suffixes of a role's file; swarm itself writes the first.
SUFFIXES = (SUFFIX, ".yml")


def builtin_roles_dir() -> Path:
    """Return the folder of the shipped roles, in an installed package or a source checkout."""
    return _shipped("builtin_roles", ROLES_DIR)


@functools.cache
def ignore_template() -> bytes:
    """Return the shipped ``.worktrees.gitignore``.

    Raises:
        EnvironmentProblem: the installation is incomplete.
    """
    with fsio.os_errors("cannot read a file of swarm's own; install it again"):
        return fsio.read_small(_shipped("worktrees.gitignore", ".worktrees.gitignore"))


@functools.cache
def _shipped(in_package: str, in_checkout: str) -> Path:
    from importlib.resources import files

    package = Path(str(files("swarm").joinpath(in_package)))
    return package if package.exists() else Path(__file__).resolve().parents[2] / in_checkout


@dataclass(frozen=True, slots=True)
class RolePlaces:
    """Where roles are looked for.

    Attributes:
        root: the main checkout, or None outside of a repository.
        swarm_dir: the swarm directory in use, or None.
        builtin: the shipped roles; None looks them up.
        pod: those of ``pods/roles`` come first.
    """

    root: Path | None
    swarm_dir: Path | None = None
    builtin: Path | None = None
    pod: bool = False

    @classmethod
    def standard(cls, root: Path | None, swarm_dir: Path | None) -> RolePlaces:
        """Return the places of a repository and a swarm directory, and the shipped roles.

        Raises:
            SymlinkInTheWay, StateDirProblem: the repository's ``.swarm`` is a link, or another user's.
        """
        if root is not None:
            fsio.refuse_foreign(root / ".swarm")
        return cls(root, swarm_dir)


class _Place(NamedTuple):
    """One folder of roles; no link in it may lead out of ``fence``."""

    kind: RoleKind
    folder: Path
    fence: Path


class _Found(NamedTuple):
    """A role's file, not read yet."""

    name: str
    path: Path
    place: _Place


def find_role(name: str, places: RolePlaces) -> Role:
    """Return the role of that name, compared without case.

    Raises:
        InvalidName, ReservedName: it cannot be one.
        RoleNotFound: no place has it; the message lists what there is.
        ConfigProblem, SymlinkInTheWay, NoPermission: its file cannot be used.
    """
    check_name("role", name)
    wanted = name.casefold()
    for place in _places(places):
        same = [found for found in _scan(place) if found.name.casefold() == wanted]
        if same:
            return _read_only_one(same)
    raise _not_found(name, places)


def list_roles(places: RolePlaces) -> tuple[Role, ...]:
    """Return every role once, by name, as `find_role` would.

    Raises:
        ConfigProblem, SymlinkInTheWay, NoPermission, Refused: some cannot be used; all are named.
    """
    roles, problems = scan_roles(places)
    raise_all("some roles cannot be used", problems)
    return roles


def scan_roles(places: RolePlaces) -> tuple[tuple[Role, ...], tuple[SwarmError, ...]]:
    """Return the usable roles, and the problems of the others."""
    roles: list[Role] = []
    problems: list[SwarmError] = []
    for same in _by_name(places).values():
        try:
            roles.append(_read_only_one(same))
        except SwarmError as error:
            problems.append(error)
    return tuple(sorted(roles, key=lambda role: role.name.casefold())), tuple(problems)


def overridden(places: RolePlaces) -> dict[str, tuple[Path, ...]]:
    """Return, by name without case, the files that a stronger place's role of the same name hides."""
    seen: dict[str, list[Path]] = {}
    for place in _places(places):
        for name, paths in _one_place(place).items():
            seen.setdefault(name, []).append(paths[0].path)
    return {name: tuple(paths[1:]) for name, paths in seen.items() if len(paths) > 1}


def check_file(path: Path) -> Role:
    """Read a role from a file, or a folder, wherever it is.

    Raises:
        InvalidName, ReservedName: it cannot be called as it is.
        ConfigProblem, SymlinkInTheWay, NoPermission, Refused: it cannot be used.
    """
    file = path
    if path.is_dir():
        file = next((path / one for one in (INSTRUCTIONS, EXTRAS) if fsio.exists(path / one)), path / INSTRUCTIONS)
    in_folder = file.name in (INSTRUCTIONS, EXTRAS)
    if in_folder and file.name == EXTRAS and fsio.exists(file.with_name(INSTRUCTIONS)):
        file = file.with_name(INSTRUCTIONS)
    if not in_folder and file.suffix not in SUFFIXES:
        raise ConfigProblem(f"{path}: is no role", hint=f"a role is a {SUFFIX} file, or a folder with {INSTRUCTIONS}")
    name = file.parent.name if in_folder else file.stem
    check_name("role", name)
    return _read(_Found(name, file, _Place(RoleKind.REPOSITORY, file.parent, file.parent)))


def role_names(places: RolePlaces) -> tuple[str, ...]:
    """Return the names of all roles without reading them."""
    return tuple(sorted((same[0].name for same in _by_name(places).values()), key=str.casefold))


def misnamed(places: RolePlaces) -> tuple[Path, ...]:
    """Return the files that are meant as roles, but cannot be any by their names."""
    return tuple(
        place.folder / entry
        for place in _places(places)
        for entry in _entries(place)
        if name_of(entry) != entry and entry[0] != "." and not _is_name(name_of(entry))
    )


# --- looking ----------------------------------------------------------------------------------


def _places(places: RolePlaces) -> Iterator[_Place]:
    if places.pod:
        yield from _pod_places(places)
    if places.root is not None:
        folder = places.root / ROLES_DIR
        yield _Place(RoleKind.REPOSITORY, folder, places.root)
        folder = places.root / ".swarm" / ROLES_DIR
        yield _Place(RoleKind.PROJECT, folder, places.root)
    if places.swarm_dir is not None and (places.root is None or places.swarm_dir != places.root / ".swarm"):
        # The user's own folder: it may as a whole be a link, as dotfile managers make them.
        folder = places.swarm_dir / ROLES_DIR
        yield _Place(RoleKind.SWARM_DIR, folder, folder)
    builtin = places.builtin or builtin_roles_dir()
    yield _Place(RoleKind.BUILTIN, builtin, builtin)


def _pod_places(places: RolePlaces) -> Iterator[_Place]:
    if places.root is not None:
        yield _Place(RoleKind.PROJECT, places.root / ".swarm" / POD_ROLES, places.root)
    if places.swarm_dir is not None and (places.root is None or places.swarm_dir != places.root / ".swarm"):
        folder = places.swarm_dir / POD_ROLES
        yield _Place(RoleKind.SWARM_DIR, folder, folder)


def _scan(place: _Place) -> Iterator[_Found]:
    """Yield candidates for roles by name and place; folders without instructions are none."""
    for entry in _entries(place):
        path = place.folder / entry
        name = name_of(entry)
        file = (
            path
            if name != entry
            else next((path / one for one in (INSTRUCTIONS, EXTRAS) if fsio.exists(path / one)), None)
        )
        if file is not None and _is_name(name):
            yield _Found(name, file, place)


def _entries(place: _Place) -> list[str]:
    try:
        return sorted(os.listdir(place.folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise fsio.translate(error, "cannot look for roles") from error


def name_of(entry: str) -> str:
    """Return which role a file of this name would be; of a folder, its own name."""
    return next((entry.removesuffix(suffix) for suffix in SUFFIXES if entry.endswith(suffix)), entry)


def _is_name(name: str) -> bool:
    try:
        check_name("role", name)
    except (InvalidName, ReservedName):
        return False
    return True


def _by_name(places: RolePlaces) -> dict[str, list[_Found]]:
    """Return per name the role of the first place that has it."""
    result: dict[str, list[_Found]] = {}
    for place in _places(places):
        result = _one_place(place) | result
    return result


def _one_place(place: _Place) -> dict[str, list[_Found]]:
    here: dict[str, list[_Found]] = {}
    for found in _scan(place):
        here.setdefault(found.name.casefold(), []).append(found)
    return here


def _not_found(name: str, places: RolePlaces) -> RoleNotFound:
    known = role_names(places)
    base = places.root or places.swarm_dir
    path = Path(ROLES_DIR, name, INSTRUCTIONS)
    return RoleNotFound(
        f"there is no role {name}; the roles are: {', '.join(known) or 'none'}",
        hint=did_you_mean(name, known, f"create {path if base is None else base / path}, or name an existing role"),
        role=name,
    )


# --- reading ----------------------------------------------------------------------------------


def _read_only_one(same: list[_Found]) -> Role:
    if len(same) > 1:
        paths = " and ".join(str(found.path) for found in same)
        raise ConfigProblem(f"role {same[0].name} is there twice: {paths}", hint="keep one of them")
    return _read(same[0])


def _read(found: _Found) -> Role:
    return _read_folder(found) if found.path.name == INSTRUCTIONS else _read_yaml(found)


def _read_folder(found: _Found) -> Role:
    instructions = _read_text(found, found.path)
    values: dict[str, Any] = {}
    path = found.path.with_name(EXTRAS)
    if fsio.exists(path):
        values, table = _load(found, path)
        for key in ("instructions", "instructions_file"):
            if key in values:
                what = f"{key}: stand in {INSTRUCTIONS} beside this file already"
                raise _key_of(table, key).problem(what, hint="keep one of the two")
    return _role(found, values, instructions)


def _read_yaml(found: _Found) -> Role:
    values, table = _load(found, found.path)
    if "name" not in values and found.path.name != EXTRAS:
        raise table.problem("name: is missing", hint=f"add `name: {found.name}`")
    if "instructions_file" in values:
        if "instructions" in values:
            raise _key_of(table, "instructions_file").problem("instructions_file: stands beside instructions")
        path = found.path.parent / values["instructions_file"]
        if not os.path.lexists(path):
            hint = "its path counts from the folder of this role file"
            raise _key_of(table, "instructions_file").problem(f"instructions_file: there is no {path}", hint=hint)
        values["instructions"] = _read_text(found, path)
    if not any(values.get(key, "").strip() for key in ("instructions", "system_prompt")):
        raise table.problem("instructions: are missing", hint="add `instructions: |` and what the agent should do")
    return _role(found, values, values.get("instructions", ""))


def _role(found: _Found, values: dict[str, Any], instructions: str) -> Role:
    from swarm.roles import file as role_file

    options = role_file.options(values)
    description = " ".join(values.get("description", "").split())
    return Role(
        name=found.name,
        description=description or first_sentence(instructions or options.system_prompt),
        instructions=instructions,
        source=found.path,
        kind=found.place.kind,
        options=options,
    )


def _load(found: _Found, path: Path) -> tuple[dict[str, Any], Table]:
    """Return the values of a role's YAML file; every problem of it is raised at once."""
    from swarm.kit import yaml
    from swarm.roles import file as role_file

    table = yaml.load(_read_bytes(found, path), str(path))
    problems: list[SwarmError] = []
    values: dict[str, Any] = {}
    try:
        values = role_file.ROLE.read(table.plain())
    except ValueError as error:
        problems += table.problems(error)
    name = _name_in(table)
    if name is not None and str(name.plain()).casefold() != found.name.casefold():
        hint = f"write `name: {found.name}`, or rename the file"
        problems.insert(0, name.problem(f"name: must be the name of the file, {found.name}", hint=hint))
    raise_all(f"role {found.name} cannot be used", problems)
    return values, table


def _key_of(table: Table, key: str) -> Any:
    from swarm.roles import file as role_file

    spelled = (key, *role_file.ROLE.fields[key].aliases)
    return next(pair.key for name, pair in table.pairs.items() if name in spelled)


def _name_in(table: Table) -> Any:
    from swarm.roles import file as role_file

    return next(
        (table.get(key) for key in ("name", *role_file.ROLE.fields["name"].aliases) if key in table.pairs), None
    )


def _read_text(found: _Found, path: Path) -> str:
    text = textfile.decode(_read_bytes(found, path), str(path))
    if not text.strip():
        raise ConfigProblem(f"{path}: is empty", hint="write down what the agent should do")
    return text


def _read_bytes(found: _Found, path: Path) -> bytes:
    _refuse_escape(found.place, path)
    data = textfile.read_bytes(path)
    if data is None:
        raise ConfigProblem(f"{path}: has just gone", hint="try again")
    return data


def _refuse_escape(place: _Place, path: Path) -> None:
    """Refuse a file that by some link lies outside of its folder of roles."""
    # realpath, because Path.resolve raises another kind of error at a link to itself.
    folder, target, fence = (Path(os.path.realpath(one)) for one in (place.folder, path, place.fence))
    for inner, outer, link in ((folder, fence, place.folder), (target, folder, path)):
        if not inner.is_relative_to(outer):
            raise SymlinkInTheWay(f"cannot use {link}: it is a link to {inner}, outside of {outer}")
