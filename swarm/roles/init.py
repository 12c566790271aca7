"""Write new role files, from a template or as a copy."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from swarm.kit import files as fsio
from swarm.kit import textfile, yaml
from swarm.kit.errors import StateDirProblem, SymlinkInTheWay, UsageProblem
from swarm.project.layout import STATE_DIR
from swarm.project.names import ROLES_DIR, check_name
from swarm.roles import schemas
from swarm.roles.errors import RoleExists
from swarm.roles.find import EXTRAS, INSTRUCTIONS, SUFFIX, SUFFIXES, check_file, ignore_template, name_of
from swarm.roles.template import TEMPLATE

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.roles.find import RolePlaces
    from swarm.roles.role import Role

_VALUE = re.compile(r"""^("[^"]*"|'[^']*'|[^\s,}]+)""")


def write_role(name: str, places: RolePlaces, *, source: Role | None = None, private: bool = False) -> Path:
    """Write a new role file into the project, or outside of one into the swarm directory, and return it.

    Args:
        source: copy this role; without, write the template.
        private: into the swarm directory even in a project.

    Raises:
        InvalidName, ReservedName: it cannot be called so.
        RoleExists: that place has a role of the name.
        UsageProblem: there is no such place.
    """
    check_name("role", name)
    folder = _folder(places, private=private)
    _refuse_same(folder, name)
    if source is not None:
        files = _copied(name, source)
    else:
        files = {f"{name}{SUFFIX}": _template(name, folder, swarm_dir_for(places, private=private))}
    with fsio.os_errors(f"cannot write the role {name}"):
        written: list[Path] = []
        try:
            for file, data in files.items():
                path = folder / file
                if written and fsio.exists(path) and textfile.read_bytes(path) == data:
                    continue  # a text that both roles share
                path.parent.mkdir(parents=True, exist_ok=True)
                fsio.write_new(path, data, 0o644)
                written.append(path)
            check_file(written[0])  # the new file is usable
        except FileExistsError as error:
            _take_back(written)
            raise RoleExists(f"cannot write the role {name}: {error.filename} is there already") from None
        except BaseException:
            _take_back(written)
            raise
    return written[0]


def _folder(places: RolePlaces, *, private: bool) -> Path:
    if places.root is not None and not private:
        folder = places.root / ROLES_DIR
    elif places.swarm_dir is not None:
        folder = places.swarm_dir / ROLES_DIR
    else:
        raise UsageProblem("there is no place for a role: no repository and no swarm directory", hint="swarm init")
    if folder.is_symlink() and places.root is not None and not private:
        raise SymlinkInTheWay(f"cannot write into {folder}: it is a symbolic link")
    if fsio.exists(folder) and not folder.is_dir():
        raise StateDirProblem(f"cannot write into {folder}: it is not a folder", hint="move it away")
    return folder


def _refuse_same(folder: Path, name: str) -> None:
    for entry in os.listdir(folder) if folder.is_dir() else ():
        if name_of(entry).casefold() == name.casefold():
            raise RoleExists(f"cannot write the role {name}: {folder / entry} is there already")


def _take_back(written: list[Path]) -> None:
    for path in written:
        fsio.unlink_if_there(path)
        if path.name in (INSTRUCTIONS, EXTRAS):
            fsio.remove_empty(path.parent)


def swarm_dir_for(places: RolePlaces, *, private: bool) -> Path:
    """Return the swarm directory that a new file belongs to, with the schemas for editors in it.

    Args:
        private: the user's, even in a project.

    Raises:
        UsageProblem: there is none.
    """
    if places.root is None or private:
        if places.swarm_dir is None:
            raise UsageProblem("there is no place for it: no repository and no swarm directory", hint="swarm init")
        base = places.swarm_dir
    else:
        base = places.root / STATE_DIR
        fsio.make_private_dir(base)
        if not fsio.exists(base / ".gitignore"):
            fsio.write_atomic(base / ".gitignore", ignore_template())  # as the first change would
    schemas.place(base)
    return base


def _template(name: str, folder: Path, swarm_dir: Path) -> bytes:
    return (schemas.modeline("role", folder / f"{name}{SUFFIX}", swarm_dir) + TEMPLATE.replace("NAME", name)).encode()


def _copied(name: str, source: Role) -> dict[str, bytes]:
    """Return the files of a role under another name, in the form they have."""
    if source.source.suffix in SUFFIXES and source.source.name != EXTRAS:
        return {f"{name}{SUFFIX}": _renamed(source.source, name)} | _text_file(source)
    folder = source.source.parent
    return {
        f"{name}/{file}": _renamed(folder / file, name) if file == EXTRAS else textfile.read_bytes(folder / file) or b""
        for file in (INSTRUCTIONS, EXTRAS)
        if fsio.exists(folder / file)
    } | {f"{name}/{file}": data for file, data in _text_file(source).items()}


def _text_file(source: Role) -> dict[str, bytes]:
    """Return the file that a YAML file names for its instructions."""
    if source.source.suffix not in SUFFIXES:
        return {}
    found = yaml.load(source.source).get("instructions_file")
    if not isinstance(found, yaml.Scalar):
        return {}
    return {str(found.value): textfile.read_bytes(source.source.parent / str(found.value)) or b""}


def _renamed(path: Path, name: str) -> bytes:
    """Return a YAML file's text with another name in it, comments and all."""
    data = textfile.read_bytes(path) or b""
    tree = yaml.load(data, str(path))
    pair = next((tree.pairs[key] for key in ("name", "role_name") if key in tree.pairs), None)
    if pair is None:
        return data
    lines = textfile.decode(data, str(path)).splitlines(keepends=True)
    number = pair.value.line - 1
    before, rest = lines[number][: pair.value.column - 1], lines[number][pair.value.column - 1 :]
    lines[number] = before + _VALUE.sub(name, rest, count=1)
    return "".join(lines).encode()
