"""Where settings come from: the values of each place are a layer, and layers are laid over one another.

The last one wins::

defaults < the user's file < the project's < its local one < environment < flags
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit.errors import ConfigProblem, raise_all
from swarm.kit.forms import Misfit, Trouble, troubles_of
from swarm.project.config.settings import (
    ENVIRONMENT_PREFIX,
    SECTION_TYPES,
    SECTIONS,
    Origin,
    OriginKind,
    Setting,
    Settings,
    default_origins,
    describe,
    find_setting,
    unknown_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.project.config.checks import Section

#: Variables of a pane that look like a setting but are none.
NOT_SETTINGS = frozenset({"SWARM_SESSION", "SWARM_SESSION_DIR", "SWARM_SESSION_ID"})
_BY_VARIABLE = {one.variable: one for one in describe()}


class Entry(NamedTuple):
    """One value as found.

    ``key`` is as it was spelled, dotted; ``where`` and ``value_where`` say where key and value
    stand.  ``is_text`` marks a value from outside YAML, to be read by `Form.split` first.
    """

    key: str
    value: object
    where: str
    value_where: str
    is_text: bool = False


class Layer(NamedTuple):
    """The values of one place."""

    kind: OriginKind
    entries: tuple[Entry, ...]


#: What agents and strangers could write.
_OF_REPOSITORY = (OriginKind.PROJECT, OriginKind.LOCAL)


#: Beside all of the section about boxes.
_FOR_USERS = frozenset({"tasks.workdirs"})


def _is_users_to_say(setting: Setting, value: object) -> bool:
    """Whether a value is left alone in a repository's file: it could give an agent in a box more, or take it away.

    Raises:
        ValueError: it says something.
    """
    if setting.key not in _FOR_USERS and setting.section != "sandbox":
        return False
    if setting.key == "sandbox.enabled" and value is True:
        return False
    if value != setting.default:
        hint = "set it in your own file, ~/.swarm/config.yaml, or on the command line"
        raise Misfit(Trouble("is not for a repository to say", hint=hint))
    return True


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Return the settings among the variables of *environ*; an empty variable is not set.

    A variable that starts like a section but names no setting becomes an unknown key;
    ``SWARM_DIR`` and the like have their own meaning and are left alone.
    """
    entries: list[Entry] = []
    for variable, value in sorted(environ.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or not value or variable in NOT_SETTINGS:
            continue
        known = _BY_VARIABLE.get(variable)
        section, _, rest = variable.removeprefix(ENVIRONMENT_PREFIX).lower().partition("_")
        if known is not None:
            entries.append(Entry(known.key, value, variable, variable, is_text=True))
        elif section in SECTIONS and rest:
            entries.append(Entry(f"{section}.{rest}", value, variable, variable, is_text=True))
    return Layer(OriginKind.ENVIRONMENT, tuple(entries))


def flag_layer(flags: Mapping[str, object]) -> Layer:
    """Return the settings of the command line: dotted keys; None means not given."""
    return Layer(
        OriginKind.FLAG,
        tuple(
            Entry(name, value, "command line", "command line", is_text=isinstance(value, str))
            for name, value in flags.items()
            if value is not None
        ),
    )


def build_settings(layers: Sequence[Layer]) -> Settings:
    """Lay *layers* over the defaults, weakest first.

    Raises:
        ConfigProblem, Refused: with every problem of every layer.
    """
    values: dict[str, object] = {}
    origins = dict(default_origins())
    problems: list[ConfigProblem] = []
    for layer in layers:
        seen: dict[str, Entry] = {}
        for entry in layer.entries:
            found = find_setting(entry.key)
            if found is None:
                problems.append(unknown_key(entry.key, entry.where, entry.value))
                continue
            if found.key in seen:
                problems.append(_twice(entry, seen[found.key], found.key))
                continue
            seen[found.key] = entry
            try:
                value = _read(found, entry)
                if layer.kind in _OF_REPOSITORY and _is_users_to_say(found, value) and found.key in values:
                    continue
            except ValueError as error:
                problems += (_wrong(entry, one) for one in troubles_of(error))
                continue
            values[found.key] = value
            origins[found.key] = Origin(layer.kind, entry.where)
    raise_all("the configuration has several problems", problems)
    return _assemble(values, origins)


def _read(setting: Setting, entry: Entry) -> object:
    if entry.value is None:
        raise ValueError("has no value")
    raw = entry.value
    if entry.is_text and isinstance(raw, str):
        raw = setting.form.split(raw)
    return setting.form.read(raw)


def _assemble(values: Mapping[str, object], origins: Mapping[str, Origin]) -> Settings:
    sections: dict[str, Section] = {}
    for name, kind in SECTION_TYPES.items():
        prefix = name + "."
        given = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
        sections[name] = kind(**given)
    return Settings(MappingProxyType(dict(origins)), **sections)


def _wrong(entry: Entry, trouble: Trouble) -> ConfigProblem:
    what = f"{entry.value_where}: {trouble.inside((), entry.key).text}"
    return ConfigProblem(what, hint=trouble.hint, key=entry.key, where=entry.value_where)


def _twice(entry: Entry, first: Entry, best: str) -> ConfigProblem:
    return ConfigProblem(
        f"{entry.where}: {entry.key}: is set twice, first as {first.key} at {first.where}",
        hint=f"keep one of the two, best {best}",
        key=entry.key,
        where=entry.where,
    )
