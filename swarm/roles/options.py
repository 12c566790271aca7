"""Options of a role.

Each is plain data that survives JSON, because the step that starts an agent is journalled with them.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from swarm.roles.rights import Right

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")
#: The events at which a role can have hooks run, as the program that has such hooks lists them itself.
EVENTS = (
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "UserPromptSubmit"),
    *("UserPromptExpansion", "SessionStart", "SessionEnd", "Stop", "StopFailure", "SubagentStart", "SubagentStop"),
    *("PreCompact", "PostCompact", "PermissionRequest", "PermissionDenied", "Setup", "TeammateIdle", "TaskCreated"),
    *("TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange", "WorktreeCreate", "WorktreeRemove"),
    *("InstructionsLoaded", "CwdChanged", "FileChanged", "MessageDisplay"),
)


class PermissionMode(StrEnum):
    """The answer of an agent program to a tool call that no rule covers."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    AUTO = "auto"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


class Policy(StrEnum):
    """The effect of a failed command: swarm undoes the start, or warns."""

    ABORT = "abort"
    WARN = "warn"


class Unclear(StrEnum):
    """The answer to a tool call if the guard cannot tell whether a deny rule matches."""

    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A model that answers permission requests that no rule covers.

    Attributes:
        enabled: it is asked.
        instructions: what it is told.
        model: which one.
        timeout: seconds until the question goes to a person instead.
    """

    enabled: bool = False
    instructions: str = ""
    model: str = "haiku"
    timeout: float = 45


@dataclass(frozen=True, slots=True)
class Permissions:
    """Which tool calls need no question: rules as in `permissions.rules`, spelled as written."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    reviewer: Reviewer = field(default=Reviewer(), metadata={"of": Reviewer})
    unclear: Unclear = field(default=Unclear.ASK, metadata={"of": Unclear})


@dataclass(frozen=True, slots=True)
class Hook:
    """A command that the agent program runs when something happens.

    Attributes:
        event: what, in the program's words, such as ``PostToolUse``.
        matcher: for which tools; empty is all.
        command: a shell command.
        timeout: seconds; 0 is the program's own.
    """

    event: str
    command: str
    matcher: str = ""
    timeout: float = 0


@dataclass(frozen=True, slots=True)
class Env:
    """Changes to the environment of the program against that of its starter.

    Attributes:
        narrow: only what *keep* names goes along, beside what swarm and a terminal need.
        keep: names and patterns, ``pass`` in the file.
        drop: names and patterns of what does not go along.
        set: names and values.
    """

    narrow: bool = False
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    set: Mapping[str, str] = field(default_factory=dict, hash=False)

    def passes(self, name: str) -> bool:
        """Whether to pass a variable that swarm does not need."""
        return not self.drops(name) and (not self.narrow or _matches(name, self.keep))

    def drops(self, name: str) -> bool:
        """Whether to drop a variable even if a terminal needs it."""
        return _matches(name, self.drop)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The message for an agent that has been idle for long.

    Attributes:
        idle_timeout: seconds.
        message: what it is told.
        condition: a shell command that must succeed first; empty is none.
    """

    idle_timeout: float
    message: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """The preparation of a fresh worktree before the first turn.

    Attributes:
        copy, link: untracked files of the main checkout, as patterns.
        run: commands, each a line that `kit.commandline.words_of` splits; there is no shell.
        ports: names of variables that get a free port each.
        timeout: seconds for each command.
    """

    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    timeout: float = 600
    policy: Policy = field(default=Policy.ABORT, metadata={"of": Policy})


@dataclass(frozen=True, slots=True)
class Teardown:
    """Commands run before a worktree goes, as in `Setup`."""

    run: tuple[str, ...] = ()
    timeout: float = 60
    policy: Policy = field(default=Policy.WARN, metadata={"of": Policy})


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an agent may use up; 0 is no limit.

    Attributes:
        tokens: read and written.
        cost: US dollars.
        minutes: of running.
        agents: of this role in one session.
    """

    tokens: int = 0
    cost: float = 0
    minutes: float = 0
    agents: int = 0


@dataclass(frozen=True, slots=True)
class WorktreeOptions:
    """The role's options for its worktree; None and empty leave them to the session.

    Attributes:
        enabled: work in a worktree of its own.
        branch_from: where its branch starts.
        use_detached_head: have no branch.
        subdir: the folder of the worktree in which the agent works.
    """

    enabled: bool | None = None
    branch_from: str = ""
    use_detached_head: bool | None = None
    subdir: str = "."


@dataclass(frozen=True, slots=True)
class Network:
    """What an agent in a box can reach beside its model.

    Attributes:
        preset: ``model``, ``packages``, ``none`` or ``all``; empty leaves it to the settings.
        hosts: further hosts, beside those of the settings.
    """

    preset: str = ""
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """All fields of a role file but name, description and text.

    Attributes:
        agent_type: the agent program; empty leaves it to the command line and the settings.
        command: any other program instead, as words.
        model: the model's name for the program; empty: the program chooses.
        permission_mode: always passed to a program that has such modes.
        root_dir: the repository that the role is for, as `root_dir` reads it.
        claude_config_dir: the program's configuration folder; empty is the user's own.
        settings: further keys of the program's settings file.
        telemetry: its program sends measurements; None leaves it to the settings.
        sandbox: its program runs in a box; None leaves it to the command line and the settings.
        network: what its program in a box can reach; swarm reads it in the user's own directories only.
        print: its program does the task without a dialog, and ends.
        may: its rights over agents that others started; swarm reads them in the user's own directories only.
    """

    agent_type: str = ""
    command: tuple[str, ...] = ()
    model: str = ""
    permission_mode: PermissionMode = field(default=PermissionMode.DEFAULT, metadata={"of": PermissionMode})
    root_dir: str = "."
    claude_config_dir: str = ""
    system_prompt: str = ""
    permissions: Permissions = field(default=Permissions(), metadata={"of": Permissions})
    hooks: tuple[Hook, ...] = field(default=(), metadata={"of": Hook})
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    env: Env = field(default=Env(), metadata={"of": Env})
    heartbeat: Heartbeat | None = field(default=None, metadata={"of": Heartbeat})
    setup: Setup = field(default=Setup(), metadata={"of": Setup})
    teardown: Teardown = field(default=Teardown(), metadata={"of": Teardown})
    limits: Limits = field(default=Limits(), metadata={"of": Limits})
    worktree: WorktreeOptions = field(default=WorktreeOptions(), metadata={"of": WorktreeOptions})
    telemetry: bool | None = None
    sandbox: bool | None = None
    network: Network = field(default=Network(), metadata={"of": Network})
    print: bool = False
    may: tuple[Right, ...] = field(default=(), metadata={"of": Right})

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> RoleOptions:
        """Return the value from which `plain` made this."""
        return _from_plain(cls, data)


def plain(value: Any, *, whole: bool = False) -> Any:
    """Return one of these values as JSON, without fields at their defaults.

    Args:
        whole: with everything.
    """
    if isinstance(value, StrEnum):
        return str(value)
    if is_dataclass(value):
        return {
            one.name: plain(getattr(value, one.name), whole=whole)
            for one in fields(value)
            if whole or getattr(value, one.name) != _default(one)
        }
    return [plain(item, whole=whole) for item in value] if isinstance(value, tuple) else value


def _default(one: Any) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def _from_plain(cls: type[T], data: Mapping[str, Any]) -> T:
    known: Any = cls
    given = {one.name: one.metadata.get("of") for one in fields(known) if one.name in data}
    return known(**{name: _value(of, data[name]) for name, of in given.items()})  # type: ignore[no-any-return]


def _value(of: Any, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_value(of, item) for item in value)
    if of is None or value is None:
        return value
    return of(value) if issubclass(of, StrEnum) else _from_plain(of, value)
