"""The settings: one value that holds all sections, and each of their keys found by any of its spellings.

The keys are declared in `sections`; `layers` says where their values come from.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit.errors import ConfigProblem
from swarm.kit.forms import Form, camel, kind_of, shown
from swarm.project.config.box_section import Sandbox
from swarm.project.config.sections import (
    Agents,
    Cleanup,
    Editor,
    Git,
    Lock,
    Messages,
    Notify,
    Setup,
    Teardown,
    Telemetry,
    Tmux,
    Worktrees,
)
from swarm.project.config.work_sections import Discovery, Limits, Mcp, Tasks, Tree, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.project.config.checks import Section

ENVIRONMENT_PREFIX = "SWARM_"


#: Every section with the class that holds its values.
SECTION_TYPES: Mapping[str, type[Section]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(Worktrees, Git, Lock, Cleanup, Tmux, Agents, Sandbox, Notify, Editor, Messages),
        *(Telemetry, Setup, Teardown, Limits, Tree, Tasks, Mcp, Discovery, Usage),
    )
}


class OriginKind(StrEnum):
    """Which layer a value comes from, weakest first."""

    DEFAULT = "default"
    USER = "user"
    PROJECT = "project"
    LOCAL = "local"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class Origin(NamedTuple):
    """Where a value was set: the layer, and ``path:line:col`` or the variable's name."""

    kind: OriginKind
    where: str = ""


def default_origins() -> Mapping[str, Origin]:
    """Return the origin of every key while nothing sets it."""
    return MappingProxyType({known: Origin(OriginKind.DEFAULT) for known in _BY_KEY})


class Settings:
    """All settings with their values; ``Settings()`` has the defaults.

    Attributes:
        origins: of each key, by its canonical spelling.
    """

    __slots__ = (*SECTION_TYPES, "origins")

    worktrees: Worktrees
    git: Git
    lock: Lock
    cleanup: Cleanup
    tmux: Tmux
    agents: Agents
    sandbox: Sandbox
    notify: Notify
    editor: Editor
    messages: Messages
    telemetry: Telemetry
    setup: Setup
    teardown: Teardown
    limits: Limits
    tree: Tree
    tasks: Tasks
    mcp: Mcp
    discovery: Discovery
    usage: Usage
    origins: Mapping[str, Origin]

    def __init__(self, origins: Mapping[str, Origin] | None = None, **sections: Section) -> None:
        for name, kind in SECTION_TYPES.items():
            setattr(self, name, sections.get(name) or kind())
        self.origins = default_origins() if origins is None else origins

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self._sections() == other._sections()

    def __hash__(self) -> int:
        return hash(self._sections())

    def __repr__(self) -> str:
        return f"Settings({', '.join(map(repr, self._sections()))})"

    def _sections(self) -> tuple[Section, ...]:
        return tuple(getattr(self, name) for name in SECTION_TYPES)

    def value_of(self, dotted: str) -> object:
        """Return the value of a key in any of its spellings; ConfigProblem for an unknown key."""
        found = find_setting(dotted)
        if found is None:
            raise unknown_key(dotted, "settings")
        return getattr(getattr(self, found.section), found.name)


# --- what follows from the declarations -------------------------------------------------------


class Setting(NamedTuple):
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
        for one in kind.declared():
            spellings = (*one.aliases, *([f"{section}.{camel(one.name)}"] if "_" in one.name else []))
            found.append(Setting(section, one.name, one.form, one.default, one.help, spellings))
    return tuple(found)


_DECLARED = _declared()
_BY_KEY = {one.key: one for one in _DECLARED}
_BY_SPELLING = {spelling: one for one in _DECLARED for spelling in (one.key, *one.aliases)}
#: Every section with its description.
SECTIONS: Mapping[str, str] = MappingProxyType(
    {name: (kind.__doc__ or "").strip() for name, kind in SECTION_TYPES.items()}
)


def describe() -> tuple[Setting, ...]:
    """Return every setting in the order of declaration, for the documentation and the help."""
    return _DECLARED


def find_setting(dotted: str) -> Setting | None:
    """Return the setting that any of its spellings names."""
    return _BY_SPELLING.get(dotted)


def unknown_key(name: str, where: str, value: object = None) -> ConfigProblem:
    """Return the error about a key that names no setting, with the likely one."""
    spelled = shown(name)[1:-1]
    facts = {"key": name, "where": where}
    if name in SECTIONS:
        kind = kind_of(value) if not isinstance(value, (str, int)) else shown(value)
        reason = f"is a section and holds keys of its own, not {kind}"
        return ConfigProblem(f"{where}: {spelled}: {reason}", **facts)
    from swarm.kit.words import closest

    close = closest(name, (*_BY_SPELLING, *SECTIONS))
    if not close:
        hint = f"the sections are {', '.join(SECTIONS)}"
        return ConfigProblem(f"{where}: {spelled}: unknown key", hint=hint, **facts)
    meant = _BY_SPELLING[close].key if close in _BY_SPELLING else close
    if where.startswith(ENVIRONMENT_PREFIX) and meant in _BY_KEY:
        meant = _BY_KEY[meant].variable
    return ConfigProblem(f"{where}: {spelled}: unknown key", hint=f"did you mean {meant}?", **facts)
