"""The settings: one value that holds all sections, and each of their keys found by any of its spellings.

The keys are declared in `sections`; `layers` says where their values come from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from swarm.kit.errors import ConfigProblem
from swarm.project.config.forms import Form, kind_of, shown
from swarm.project.config.sections import (
    Agents,
    Cleanup,
    Git,
    Limits,
    Lock,
    Messages,
    Notify,
    Setup,
    Teardown,
    Telemetry,
    Tmux,
    Usage,
    Worktrees,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ENVIRONMENT_PREFIX = "SWARM_"


class OriginKind(StrEnum):
    """Which layer a value comes from, weakest first."""

    DEFAULT = "default"
    USER = "user"
    PROJECT = "project"
    LOCAL = "local"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was set: the layer, and ``path:line:col`` or the variable's name."""

    kind: OriginKind
    where: str = ""


def default_origins() -> Mapping[str, Origin]:
    """Return the origin of every key while nothing sets it."""
    return MappingProxyType({known: Origin(OriginKind.DEFAULT) for known in _BY_KEY})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their values; ``Settings()`` has the defaults."""

    worktrees: Worktrees = field(default_factory=Worktrees)
    git: Git = field(default_factory=Git)
    lock: Lock = field(default_factory=Lock)
    cleanup: Cleanup = field(default_factory=Cleanup)
    tmux: Tmux = field(default_factory=Tmux)
    agents: Agents = field(default_factory=Agents)
    notify: Notify = field(default_factory=Notify)
    messages: Messages = field(default_factory=Messages)
    telemetry: Telemetry = field(default_factory=Telemetry)
    setup: Setup = field(default_factory=Setup)
    teardown: Teardown = field(default_factory=Teardown)
    limits: Limits = field(default_factory=Limits)
    usage: Usage = field(default_factory=Usage)
    origins: Mapping[str, Origin] = field(default_factory=default_origins, compare=False, repr=False)

    def value_of(self, dotted: str) -> object:
        """Return the value of a key in any of its spellings; ConfigProblem if there is none."""
        found = find_setting(dotted)
        if found is None:
            raise unknown_key(dotted, "settings")
        return getattr(getattr(self, found.section), found.name)


# --- what follows from the declarations -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared key, as the checks and the documentation see it."""

    section: str
    name: str
    form: Form[Any]
    default: Any
    help: str
    aliases: tuple[str, ...]

    @property
    def key(self) -> str:
        """The canonical spelling, ``section.name``."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return ENVIRONMENT_PREFIX + self.key.replace(".", "_").upper()

    @property
    def default_text(self) -> str:
        """The default as it would stand in YAML."""
        return self.form.show(self.default)


def _declared() -> tuple[Setting, ...]:
    found: list[Setting] = []
    for section, kind in SECTION_TYPES.items():
        for one in fields(kind):
            camel = f"{section}.{_camel(one.name)}"
            spellings = (*one.metadata["aliases"], *([camel] if "_" in one.name else []))
            form, words = one.metadata["form"], one.metadata["help"]
            found.append(Setting(section, one.name, form, one.default, words, spellings))
    return tuple(found)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


#: Every section with the class that holds its values.
SECTION_TYPES: Mapping[str, Any] = {one.name: one.default_factory for one in fields(Settings) if one.name != "origins"}
_DECLARED = _declared()
_BY_KEY = {one.key: one for one in _DECLARED}
_BY_SPELLING = {spelling: one for one in _DECLARED for spelling in (one.key, *one.aliases)}
#: Every section with what it is about.
SECTIONS: Mapping[str, str] = MappingProxyType({name: kind.__doc__.strip() for name, kind in SECTION_TYPES.items()})


def describe() -> tuple[Setting, ...]:
    """Return every setting in the order of declaration, for the documentation and the help."""
    return _DECLARED


def find_setting(dotted: str) -> Setting | None:
    """Return the setting that any of its spellings names."""
    return _BY_SPELLING.get(dotted)


def unknown_key(name: str, where: str, value: object = None) -> ConfigProblem:
    """Return the error about a key that names no setting, with what may have been meant."""
    spelled = shown(name)[1:-1]
    facts = {"key": name, "where": where}
    if name in SECTIONS:
        kind = kind_of(value) if not isinstance(value, (str, int)) else shown(value)
        reason = f"is a section and holds keys of its own, not {kind}"
        return ConfigProblem(f"{where}: {spelled}: {reason}", **facts)
    from difflib import get_close_matches

    close = get_close_matches(name, (*_BY_SPELLING, *SECTIONS), n=1, cutoff=0.6)
    if not close:
        hint = f"the sections are {', '.join(SECTIONS)}"
        return ConfigProblem(f"{where}: {spelled}: unknown key", hint=hint, **facts)
    meant = _BY_SPELLING[close[0]].key if close[0] in _BY_SPELLING else close[0]
    if where.startswith(ENVIRONMENT_PREFIX) and meant in _BY_KEY:
        meant = _BY_KEY[meant].variable
    return ConfigProblem(f"{where}: {spelled}: unknown key", hint=f"did you mean {meant}?", **facts)
