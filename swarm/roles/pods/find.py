"""Find pod templates, and give their variables values.

A template is ``pods/templates/<name>.yaml`` of the project's ``.swarm`` or of a swarm directory; the project's wins.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.kit import files as fsio
from swarm.kit import textfile, yaml
from swarm.kit.errors import SwarmError, UsageProblem, raise_all
from swarm.kit.forms import shown, troubles_of
from swarm.project import names
from swarm.roles.errors import PodNotFound
from swarm.roles.pods import template as pod

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from swarm.roles.find import RolePlaces
    from swarm.roles.pods.template import Pod, PodTemplate, Value

TEMPLATES = "pods/templates"
_SUFFIXES = (".yaml", ".yml")


def folders(places: RolePlaces) -> tuple[Path, ...]:
    """Return the folders that may hold templates, the strongest first."""
    own = [places.root / ".swarm"] if places.root is not None else []
    return tuple(base / TEMPLATES for base in dict.fromkeys((*own, *filter(None, (places.swarm_dir,)))))


def scan(places: RolePlaces) -> tuple[tuple[PodTemplate, ...], tuple[SwarmError, ...]]:
    """Return the templates by name, and the problems of unreadable ones."""
    found: dict[str, PodTemplate] = {}
    problems: list[SwarmError] = []
    for name, path in _files(places).items():
        try:
            found[name] = load(path)
        except SwarmError as problem:
            problems.append(problem)
    return tuple(found[name] for name in sorted(found)), tuple(problems)


def _files(places: RolePlaces) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in folders(places):
        with fsio.os_errors("cannot look for pod templates"):
            for entry in sorted(os.listdir(folder)) if folder.is_dir() else ():
                stem, suffix = os.path.splitext(entry)
                if suffix in _SUFFIXES and not entry.startswith("."):
                    found.setdefault(stem.casefold(), folder / entry)
    return found


def template_names(places: RolePlaces) -> tuple[str, ...]:
    """Return the names of the templates, without reading them."""
    return tuple(path.stem for path in _files(places).values())


def find(name: str, places: RolePlaces) -> PodTemplate:
    """Return the template of a name.

    Raises:
        InvalidName, PodNotFound, ConfigProblem, Refused
    """
    names.check_name("pod template", name)
    there = _files(places)
    if name.casefold() not in there:
        known = f"the templates are {', '.join(there)}" if there else "write one: swarm pod init NAME"
        raise PodNotFound(f"there is no pod template {name}", hint=known)
    return load(there[name.casefold()])


def load(path: Path) -> PodTemplate:
    """Read a template.

    Raises:
        ConfigProblem, Refused: with file, line and column of every mistake.
    """
    data = textfile.read_bytes(path)
    tree = yaml.load(path if data is None else data, str(path))
    try:
        return pod.read(path.stem, tree.plain(), path)
    except ValueError as error:
        raise_all(f"pod template {path.stem} cannot be used", tree.problems(error))
        raise


def expand(
    template: PodTemplate,
    given: Mapping[str, object],
    environ: Mapping[str, str],
    name: str = "",
    *,
    sample: bool = False,
) -> Pod:
    """Return the agents of a template whose variables have these values.

    Args:
        given: by ``--var``.
        name: of the pod; default: as the template says.
        sample: give variables without a value one, for a check.

    Raises:
        UsageProblem: a variable has no value, or there is none of a name.
        ConfigProblem, Refused: with file, line and column of every mistake.
    """
    attempt = f"cannot launch pod template {template.name}"
    try:
        called = pod.check_pod(name or template.pod_name)
    except ValueError as error:
        raise UsageProblem(
            f"{attempt}: its pod name {shown(name or template.pod_name)} {error}", hint="--pod NAME"
        ) from None
    values = _values(template, given, attempt, sample=sample)
    try:
        return pod.expand(template, values, called, environ)
    except ValueError as error:
        tree = yaml.load(template.source)
        raise_all(f"pod template {template.name} cannot be used", tree.problems(error))
        raise


def _values(template: PodTemplate, given: Mapping[str, object], attempt: str, *, sample: bool) -> dict[str, Value]:
    problems: list[SwarmError] = []
    values: dict[str, Value] = {}
    known = {one.name: one for one in template.variables}
    for name in given:
        if name not in known:
            there = f"the variables are {', '.join(known)}" if known else "it has no variables"
            problems.append(UsageProblem(f"{attempt}: there is no variable {shown(name)}", hint=there))
    for name, one in known.items():
        try:
            if name in given:
                values[name] = one.read(given[name])
            elif one.default is not None or sample:
                values[name] = one.sample
            else:
                about = f" ({one.description})" if one.description else ""
                what = f"{attempt}: the variable {name}{about} has no value"
                problems.append(UsageProblem(what, hint=f"give it one: --var {name}=VALUE"))
        except ValueError as error:
            (trouble,) = troubles_of(error)[:1]
            problems.append(UsageProblem(f"{attempt}: --var {name}: {trouble.text}", hint=trouble.hint))
    raise_all(attempt, problems)
    return values


def read_words(words: Sequence[str]) -> dict[str, str]:
    """Return what ``NAME=VALUE`` words say; of two with one name the last.

    Raises:
        UsageProblem
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageProblem(
                f"cannot read the variable {shown(word)}: it must be NAME=VALUE", hint="--var focus=parser"
            )
        found[name] = value
    return found
