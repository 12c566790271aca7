"""The settings: every key declared once, with its type, default, limits and help.

One line in a section below is all a new key needs.  From it follow the typed attribute
(``settings.worktrees.base_path``), the key in YAML (``worktrees.base_path``, or ``basePath``), the
environment variable (``SWARM_WORKTREES_BASE_PATH``), every check and the documentation.

Layers are laid over one another, the last one wins::

    defaults < the user's file < the project's < its local one < environment < flags
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from swarm.domain import setup as setups
from swarm.domain.errors import ConfigProblem, InvalidName, raise_all
from swarm.domain.names import BRANCH_PREFIX, WORKTREE_BASE, check_prefix
from swarm.domain.prices import parse as parse_price
from swarm.domain.scalars import (
    bytes_from,
    milliseconds_from,
    plain_scalar,
    seconds_from,
    show_bytes,
    show_milliseconds,
    show_seconds,
)

T = TypeVar("T")

ENVIRONMENT_PREFIX = "SWARM_"
#: Variables that look like a setting of a section and are none: a pane is told them about itself.
NOT_SETTINGS = frozenset({"SWARM_SESSION", "SWARM_SESSION_DIR", "SWARM_SESSION_ID"})

_LONGEST_FILE_NAME = 255
_WEEK = 604_800
_GIB = 1024**3


# --- kinds of value ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How a value of one type is read, checked and shown.

    Attributes:
        name: the type in the user's words, for the documentation.
        read: turn what YAML or the caller gave into the value; ValueError says what is wrong.
        split: turn the text of an environment variable into what ``read`` takes.
        show: spell a value as it would stand in YAML.
    """

    name: str
    read: Callable[[object], T]
    split: Callable[[str], object] = plain_scalar
    show: Callable[[T], str] = str


def text(check: Callable[[str], str] = str, name: str = "text") -> Form[str]:
    """Text that passes *check*, which may also tidy it up."""

    def read(raw: object) -> str:
        # A plain integer is spelled just as it was written, so it can stand for text.
        if isinstance(raw, bool) or not isinstance(raw, (str, int)):
            raise ValueError(f"must be text, not {_kind_of(raw)}")  # noqa: TRY004
        return check(str(raw))

    return Form(name, read, split=str, show=json.dumps)


def choice(*words: str) -> Form[str]:
    """One of *words*."""

    def read(raw: object) -> str:
        if raw not in words:
            raise ValueError(f"must be {' or '.join(words)}, not {_shown(raw)}")
        return raw

    return Form(" or ".join(f"`{word}`" for word in words), read, split=str)


def several(*words: str) -> Form[tuple[str, ...]]:
    """A list of some of *words*."""
    one = choice(*words)

    def read(raw: object) -> tuple[str, ...]:
        if not isinstance(raw, (list, tuple)):
            raise ValueError(f"must be a list, not {_shown(raw)}")  # noqa: TRY004
        return tuple(dict.fromkeys(one.read(word) for word in raw))

    return replace(patterns(), name=f"list of {one.name}", read=read)


def program() -> Form[str]:
    """A command as one line or as a list of words, or none; kept as a line. There is no shell."""

    def read(raw: object) -> str:
        if raw == "":
            return ""
        return _one_command(raw)

    return replace(text(), name="command", read=read)


def _one_command(raw: object) -> str:
    if isinstance(raw, (list, tuple)):
        return setups.argv([text().read(word) for word in raw])
    return setups.command(text().read(raw))


def switch() -> Form[bool]:
    """``true`` or ``false``."""

    def read(raw: object) -> bool:
        if not isinstance(raw, bool):
            raise ValueError(f"must be true or false, not {_shown(raw)}")  # noqa: TRY004
        return raw

    return Form("true or false", read, show=lambda value: str(value).lower())


def number(low: int, high: int) -> Form[int]:
    """A whole number from *low* to *high*."""

    def read(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise ValueError(f"must be a whole number, not {_shown(raw)}")  # noqa: TRY004
        return _within(raw, low, high, str)

    return Form(f"number from {low} to {high}", read)


def amount(low: float, high: float) -> Form[float]:
    """A number that may have a fraction."""

    def read(raw: object) -> float:
        if isinstance(raw, bool) or re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", str(raw)) is None:
            raise ValueError(f"must be a number such as 5 or 2.50, not {_shown(raw)}")
        return _within(float(str(raw)), low, high, "{:g}".format)

    return Form(f"number from {low:g} to {high:g}, also with a fraction", read, show="{:g}".format)


def seconds(low: float, high: float) -> Form[float]:
    """A time in seconds."""
    return Form(
        f"time from {show_seconds(low)} to {show_seconds(high)}; a bare number is seconds",
        lambda raw: _within(seconds_from(raw), low, high, show_seconds),
        show=show_seconds,
    )


def milliseconds(low: int, high: int) -> Form[int]:
    """A time in milliseconds."""
    return Form(
        f"time from {show_milliseconds(low)} to {show_milliseconds(high)}; a bare number is milliseconds",
        lambda raw: _within(milliseconds_from(raw), low, high, show_milliseconds),
        show=show_milliseconds,
    )


def size(low: int, high: int) -> Form[int]:
    """A size in bytes."""
    return Form(
        f"size from {show_bytes(low)} to {show_bytes(high)}; a bare number is bytes",
        lambda raw: _within(bytes_from(raw), low, high, show_bytes),
        show=show_bytes,
    )


def patterns() -> Form[tuple[str, ...]]:
    """A list of names and glob patterns."""

    def read(raw: object) -> tuple[str, ...]:
        if not isinstance(raw, (list, tuple)):
            raise ValueError(f"must be a list, not {_shown(raw)}")  # noqa: TRY004
        item = text(_printable)
        return tuple(item.read(one) for one in raw)

    return Form(
        "list of names and patterns",
        read,
        split=lambda raw: [part.strip() for part in raw.split(",") if part.strip()],
        show=lambda value: json.dumps(list(value)),
    )


def paths() -> Form[tuple[str, ...]]:
    """A list of paths in the repository, and patterns of such."""
    return _listed(patterns(), setups.inside, "list of paths and patterns")


def variables() -> Form[tuple[str, ...]]:
    """A list of names of environment variables."""
    return _listed(patterns(), setups.port, "list of variables")


def _listed(form: Form[tuple[str, ...]], check: Callable[[str], str], name: str) -> Form[tuple[str, ...]]:
    return replace(form, name=name, read=lambda raw: tuple(check(one) for one in form.read(raw)))


def commands() -> Form[tuple[str, ...]]:
    """A list of commands, each one line or a list of words; kept as lines. There is no shell."""

    def read(raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [raw]
        if not isinstance(raw, (list, tuple)):
            raise ValueError(f"must be a list, not {_shown(raw)}")  # noqa: TRY004
        return tuple(_one_command(item) for item in raw)

    return Form(
        "list of commands, each a line or a list of words",
        read,
        split=lambda raw: [line for line in raw.splitlines() if line.strip()],
        show=lambda value: json.dumps(list(value)),
    )


def prices() -> Form[tuple[str, ...]]:
    """Prices of models, a line each."""
    form = patterns()

    def read(raw: object) -> tuple[str, ...]:
        lines = form.read(raw)
        for line in lines:
            parse_price(line)
        return lines

    return Form("list of `MODEL = INPUT/OUTPUT/CACHE READ/CACHE WRITE`", read, form.split, form.show)


_Number = TypeVar("_Number", int, float)


def _within(value: _Number, low: float, high: float, show: Callable[[Any], str]) -> _Number:
    if not low <= value <= high:
        raise ValueError(f"must be from {show(low)} to {show(high)}, not {show(value)}")
    return value


def _kind_of(raw: object) -> str:
    if raw is None:
        return "empty"
    if isinstance(raw, bool):
        return "true or false (quote the word if you mean it)"
    if isinstance(raw, Mapping):
        return "a mapping"
    return "a list" if isinstance(raw, (list, tuple)) else f"a {type(raw).__name__}"


def _shown(raw: object) -> str:
    if raw is None or isinstance(raw, (Mapping, list, tuple)):
        return _kind_of(raw)
    if isinstance(raw, bool):
        return str(raw).lower()
    word = ascii(raw)
    return word if len(word) <= 60 else word[:57] + "..."


# --- checks of text ---------------------------------------------------------------------------


def _printable(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    if not value.isprintable():
        raise ValueError("must not contain control characters")
    return value


def folder_inside(value: str) -> str:
    """Check a folder below the repository's root that is neither git's nor the state folder."""
    _printable(value)
    path = PurePosixPath(value)
    if path.is_absolute() or value.startswith("~"):
        raise ValueError("must be a path relative to the repository, not an absolute one")
    if ".." in path.parts:
        raise ValueError("must not contain '..'")
    if not path.parts:
        raise ValueError("must name a folder, not the repository itself")
    # Without case: on macOS `.GIT` is the same folder.
    lowered = [part.casefold() for part in path.parts]
    if ".git" in lowered:
        raise ValueError("must not be inside .git")
    if lowered[0] == ".swarm":
        raise ValueError("must not be inside .swarm, which holds swarm's own state")
    return str(path)


def file_name(value: str) -> str:
    """Check the name of a file at the root of a worktree."""
    _printable(value)
    if "/" in value or value in (".", ".."):
        raise ValueError("must be a plain file name without a folder")
    if value.casefold() in (".git", ".swarm"):
        raise ValueError(f"must not be {value}")
    if len(value.encode()) > _LONGEST_FILE_NAME:
        raise ValueError(f"must not be longer than {_LONGEST_FILE_NAME} bytes")
    return value


def _branch_prefix(value: str) -> str:
    try:
        return check_prefix(value)
    except InvalidName as error:
        raise ValueError(error.message) from None


def tmux_socket(value: str) -> str:
    """Check a tmux server: a path whose length the kernel takes, or a plain name."""
    if "/" in value:
        if len(value.encode("utf-8", "surrogateescape")) > 100:
            raise ValueError("a socket path has at most 100 bytes")
        return value
    return tmux_name(value) if value else value


def tmux_name(value: str) -> str:
    """Check a name that tmux takes as it is; it gives a meaning to dots, colons and number signs."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", value) is None:
        raise ValueError("use letters, digits, - and _")
    return value


def program_name(value: str) -> str:
    """Check the name of an agent program."""
    if re.fullmatch(r"[a-z][a-z0-9-]{0,39}", value) is None:
        raise ValueError("use a plain name such as claude or demo")
    return value


def collector(value: str) -> str:
    """Check the address of a collector; a secret in it would be shown wherever settings are shown."""
    if value and re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?(/[!-~]*)?", value, re.ASCII) is None:
        if "@" in value:
            raise ValueError("must not hold a password; put what the collector asks for into telemetry.headers_file")
        raise ValueError("must be an address such as http://localhost:4318")
    return value


def private_file(value: str) -> str:
    """Check the place of a file of the user's."""
    if value and (not value.startswith(("/", "~/")) or not value.isprintable()):
        raise ValueError("must be an absolute path, or one that begins with ~/")
    return value


# --- the settings -----------------------------------------------------------------------------


def key(default: T, form: Form[T], words: str, *aliases: str) -> T:
    """Declare one setting; *aliases* are whole dotted keys that mean the same.

    It stands where a dataclass default stands, hence the type.
    """
    return field(default=default, metadata={"form": form, "help": words, "aliases": aliases})


@dataclass(frozen=True, slots=True)
class Worktrees:
    """Where the agents' worktrees are, and what they and their branches are called."""

    base_path: str = key(
        WORKTREE_BASE,
        text(folder_inside, "folder in the repository"),
        "Folder that holds the worktrees, relative to the main checkout.",
        "worktree_base",
    )
    branch_prefix: str = key(
        BRANCH_PREFIX,
        text(_branch_prefix, "branch prefix"),
        "First part of every agent's branch, before the slash.",
    )
    layout: str = key(
        "session",
        choice("session", "role"),
        "Folders are named `<agent>-<session>`, or with `role` just `<agent>` (then one session at a time).",
    )
    instructions_file: str = key(
        "CLAUDE.local.md",
        text(file_name, "file name"),
        "File at the root of a worktree that holds the role's instructions.",
    )
    auto_cleanup_age: int = key(
        86_400_000,
        milliseconds(0, 3650 * 86_400_000),
        "Sessions older than this are stale: `cleanup_orphaned_worktrees()` of the library removes them.",
    )
    durable: bool = key(
        True,  # noqa: FBT003
        switch(),
        "Sync the file system before a set of worktrees counts as made.",
    )


@dataclass(frozen=True, slots=True)
class Git:
    """How git is run."""

    timeout: float = key(120, seconds(1, _WEEK), "Longest time one git command may take.")
    retries: int = key(
        5,
        number(0, 100),
        "How often to try again when another git program holds one of its lock files.",
    )
    jobs: int = key(
        0,
        number(0, 64),
        "Worktrees that are filled at once; 0 is the number of processor cores.",
    )


@dataclass(frozen=True, slots=True)
class Lock:
    """How long one swarm command waits for another."""

    timeout: float = key(10, seconds(0, _WEEK), "Longest wait for another swarm command on the same repository.")


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What counts as work when a worktree is removed."""

    precious: tuple[str, ...] = key(
        (
            ".env*",
            "*.local*",
            "*.pem",
            "*.key",
            "*.sqlite*",
            "*.db",
            "*.p12",
            "credentials*",
            "secrets*",
        ),
        patterns(),
        "Files that git ignores and that still count as work.",
    )
    bulk: tuple[str, ...] = key(
        (
            "node_modules",
            ".venv",
            "venv",
            "target",
            "dist",
            "build",
            "__pycache__",
            ".tox",
            ".nox",
            ".mypy_cache",
            ".pytest_cache",
            ".ruff_cache",
            ".gradle",
            ".next",
            ".cache",
            "*.pyc",
            "*.o",
            "*.class",
        ),
        patterns(),
        "Ignored folders and files that can be made again; they are dropped, with a word.",
    )
    ignored_file_limit: int = key(
        1024**2,
        size(0, 1024 * _GIB),
        "Other ignored files up to this size are saved too.",
    )
    large_file: int = key(
        16 * 1024**2,
        size(0, 1024 * _GIB),
        "Untracked files above this size are moved, not copied, into the salvage.",
    )


@dataclass(frozen=True, slots=True)
class Tmux:
    """Where the agents' panes are."""

    socket: str = key(
        "",
        text(tmux_socket, "socket"),
        "tmux server: a path, or a plain name as for `tmux -L`; empty is the user's default server.",
    )
    session: str = key(
        "swarm",
        text(tmux_name, "tmux session name"),
        "tmux session that holds the windows; `tmux attach -t <this>` shows the agents.",
    )
    panes_per_window: int = key(
        16,
        number(1, 64),
        "Panes in one window; more agents get further windows.",
    )


@dataclass(frozen=True, slots=True)
class Agents:
    """Which program plays the agents, and how patient swarm is with it."""

    program: str = key(
        "claude",
        text(program_name, "agent program"),
        "Program that is started for each agent: claude, codex, gemini, opencode, shell or demo.",
    )
    stop_grace: float = key(
        5,
        seconds(0, 3600),
        "How long a stopped agent may take to end before it is killed.",
    )
    nudge: str = key(
        "idle",
        choice("idle", "unknown", "never"),
        "When a line about waiting messages is typed into an agent's pane: when it is known to be idle, also when "
        "nothing is known, or never. Never while it works, or waits for you.",
    )
    nudge_pause: float = key(
        30,
        seconds(0.1, 3600),
        "How long an agent may take to read its messages before it is told again; later pauses are longer.",
    )


@dataclass(frozen=True, slots=True)
class Notify:
    """How you are called when an agent needs you."""

    states: tuple[str, ...] = key(
        ("waiting", "failed", "done"),
        several("waiting", "failed", "done", "idle", "stopped"),
        "States of an agent of which you are told when it comes into them.",
    )
    bell: bool = key(
        True,  # noqa: FBT003
        switch(),
        "Ring the bell of every terminal that is attached to swarm's tmux session, and show a line there.",
    )
    command: str = key(
        "",
        program(),
        "Program that is run as well, without a shell; its last word is a line that says who and what. "
        "SWARM_AGENT, SWARM_SESSION, SWARM_STATE, SWARM_DETAIL and SWARM_REPOSITORY are set for it.",
    )


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages between agents and the user."""

    lease: float = key(
        600,
        seconds(1, 86_400),
        "How long a reader may take over messages that it has taken and not acknowledged, before they go back.",
    )
    keep: int = key(
        30 * 86_400_000,
        milliseconds(3_600_000, 3650 * 86_400_000),
        "How long messages are kept that are done or were given up. They go in files of 8 MiB, so small inboxes keep "
        "more; see `swarm inbox prune`.",
    )
    keep_bytes: int = key(
        256 * 1024**2,
        size(0, 1024 * _GIB),
        "An inbox or queue that has more than this on the disk loses the oldest of them earlier, but none of the last "
        "hour; 0 is any amount.",
    )
    lock_timeout: float = key(
        60,
        seconds(1, 86_400),
        "How long a message waits to be written, or taken, while others do the same.",
    )


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Measurements that the agents' programs send to a collector of yours (OpenTelemetry); off unless switched on."""

    enabled: bool = key(
        False,  # noqa: FBT003
        switch(),
        "Let the agents' programs send them. A role can decide otherwise with `telemetry:`.",
    )
    endpoint: str = key(
        "",
        text(collector, "address"),
        "Where the collector listens; empty is `OTEL_EXPORTER_OTLP_ENDPOINT` of your environment, else this machine.",
    )
    protocol: str = key(
        "http/protobuf",
        choice("http/protobuf", "http/json", "grpc"),
        "How it is spoken to; usually port 4318 for http, 4317 for grpc.",
    )
    headers_file: str = key(
        "",
        text(private_file, "path"),
        "File of headers for the collector, such as `authorization: Bearer …`, one a line; nobody but you may read it.",
    )
    prompts: bool = key(
        False,  # noqa: FBT003
        switch(),
        "Send the text of what agents are told, too.",
    )


@dataclass(frozen=True, slots=True)
class Setup:
    """What a new worktree is given before its agent's first turn; a role's own `setup:` comes on top."""

    copy: tuple[str, ...] = key(
        (),
        paths(),
        "Untracked files and folders of the main checkout that each worktree gets a copy of.",
    )
    link: tuple[str, ...] = key(
        (),
        paths(),
        "Untracked files and folders of the main checkout that each worktree gets a symbolic link to.",
        "setup.symlink",
    )
    run: tuple[str, ...] = key(
        (),
        commands(),
        "Commands to run in each worktree, one after the other. There is no shell.",
        "setup.commands",
    )
    ports: tuple[str, ...] = key(
        (),
        variables(),
        "Environment variables that are a free port, another one for each agent.",
    )
    timeout: float = key(600, seconds(1, 86_400), "Longest time one of the commands may take.")
    policy: str = key(
        "abort",
        choice("abort", "warn"),
        "What a failure means: nothing is started and all is taken back, or there is a warning.",
        "setup.on_failure",
    )


@dataclass(frozen=True, slots=True)
class Teardown:
    """What is run in a worktree before it is removed; a role's own `teardown:` comes before."""

    run: tuple[str, ...] = key((), commands(), "Commands, as in setup.run.", "teardown.commands")
    timeout: float = key(60, seconds(1, 86_400), "Longest time one of the commands may take.")
    policy: str = key(
        "warn",
        choice("abort", "warn"),
        "What a failure means: nothing is removed, or there is a warning.",
        "teardown.on_failure",
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an agent may use up whose role does not say it; 0 is no limit."""

    tokens: int = key(0, number(0, 10**12), "Tokens that it may read and write, those from the model's cache included.")
    cost: float = key(0, amount(0, 10**6), "US dollars that it may cost, by the prices that `swarm usage` shows.")
    minutes: float = key(0, amount(0, 10**6), "Minutes that it may run.")
    agents: int = key(0, number(0, 256), "Agents of one role in one session.")


@dataclass(frozen=True, slots=True)
class Usage:
    """What tokens cost."""

    prices: tuple[str, ...] = key(
        (),
        prices(),
        "Prices of models in US dollars for a million tokens, looked at before those that swarm knows; `*` stands for "
        "any part of a name.",
    )


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


def _default_origins() -> Mapping[str, Origin]:
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
    origins: Mapping[str, Origin] = field(default_factory=_default_origins, compare=False, repr=False)

    def value_of(self, dotted: str) -> object:
        """Return the value of a key in any of its spellings; ConfigProblem if there is none."""
        found = find_setting(dotted)
        if found is None:
            raise _unknown(dotted, "settings")
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
    for section, kind in _SECTION_TYPES.items():
        for one in fields(kind):
            camel = f"{section}.{_camel(one.name)}"
            spellings = (*one.metadata["aliases"], *([camel] if "_" in one.name else []))
            form, words = one.metadata["form"], one.metadata["help"]
            found.append(Setting(section, one.name, form, one.default, words, spellings))
    return tuple(found)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_SECTION_TYPES: dict[str, Any] = {one.name: one.default_factory for one in fields(Settings) if one.name != "origins"}
_DECLARED = _declared()
_BY_KEY = {one.key: one for one in _DECLARED}
_BY_SPELLING = {spelling: one for one in _DECLARED for spelling in (one.key, *one.aliases)}
_BY_VARIABLE = {one.variable: one for one in _DECLARED}
#: Every section with what it is about.
SECTIONS: Mapping[str, str] = MappingProxyType({name: kind.__doc__.strip() for name, kind in _SECTION_TYPES.items()})


def describe() -> tuple[Setting, ...]:
    """Return every setting in the order of declaration, for the documentation and the help."""
    return _DECLARED


def find_setting(dotted: str) -> Setting | None:
    """Return the setting that any of its spellings names."""
    return _BY_SPELLING.get(dotted)


# --- layers -----------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Layer:
    """The values of one place."""

    kind: OriginKind
    entries: tuple[Entry, ...]


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
    origins = {known: Origin(OriginKind.DEFAULT) for known in _BY_KEY}
    problems: list[ConfigProblem] = []
    for layer in layers:
        seen: dict[str, Entry] = {}
        for entry in layer.entries:
            found = find_setting(entry.key)
            if found is None:
                problems.append(_unknown(entry.key, entry.where, entry.value))
                continue
            if found.key in seen:
                problems.append(_twice(entry, seen[found.key]))
                continue
            seen[found.key] = entry
            try:
                values[found.key] = _read(found, entry)
            except ValueError as error:
                problems.append(_wrong(entry, str(error)))
                continue
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
    sections: dict[str, Any] = {}
    for name, kind in _SECTION_TYPES.items():
        prefix = name + "."
        given = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
        sections[name] = kind(**given)
    return Settings(**sections, origins=MappingProxyType(dict(origins)))


def _wrong(entry: Entry, reason: str) -> ConfigProblem:
    return ConfigProblem(f"{entry.value_where}: {entry.key}: {reason}", key=entry.key, where=entry.value_where)


def _twice(entry: Entry, first: Entry) -> ConfigProblem:
    return ConfigProblem(
        f"{entry.where}: {entry.key}: is set twice, first as {first.key} at {first.where}",
        hint=f"keep one of the two, best {_BY_SPELLING[entry.key].key}",
        key=entry.key,
        where=entry.where,
    )


def _unknown(name: str, where: str, value: object = None) -> ConfigProblem:
    shown = _shown(name)[1:-1]
    facts = {"key": name, "where": where}
    if name in SECTIONS:
        kind = _kind_of(value) if not isinstance(value, (str, int)) else _shown(value)
        reason = f"is a section and holds keys of its own, not {kind}"
        return ConfigProblem(f"{where}: {shown}: {reason}", **facts)
    from difflib import get_close_matches

    close = get_close_matches(name, (*_BY_SPELLING, *SECTIONS), n=1, cutoff=0.6)
    if not close:
        hint = f"the sections are {', '.join(SECTIONS)}"
        return ConfigProblem(f"{where}: {shown}: unknown key", hint=hint, **facts)
    meant = _BY_SPELLING[close[0]].key if close[0] in _BY_SPELLING else close[0]
    if where.startswith(ENVIRONMENT_PREFIX) and meant in _BY_KEY:
        meant = _BY_KEY[meant].variable
    return ConfigProblem(f"{where}: {shown}: unknown key", hint=f"did you mean {meant}?", **facts)
