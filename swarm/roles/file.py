"""Read a role's YAML file: every key, its type and its limits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from swarm.kit import commandline
from swarm.kit.forms import (
    Field,
    Form,
    Misfit,
    Trouble,
    amount,
    choice,
    commands,
    filled,
    gather,
    listing,
    mapping,
    number,
    refuse,
    seconds,
    switch,
    text,
    then,
)
from swarm.kit.scalars import Bare, fraction_from
from swarm.permissions import decide
from swarm.project.config import hosts
from swarm.project.names import PROGRAM_ALIASES, PROGRAMS
from swarm.roles.hooks import HOOKS
from swarm.roles.options import (
    Env,
    Heartbeat,
    Limits,
    Network,
    PermissionMode,
    Permissions,
    Policy,
    Reviewer,
    RoleOptions,
    Setup,
    Teardown,
    Unclear,
    WorktreeOptions,
)
from swarm.roles.rights import Right

_DAY = 86_400
_WEEK = 7 * _DAY
_LONG = 1 << 20
#: How people call the programs, and how swarm does.
_PROGRAMS = {**{name: name for name in PROGRAMS}, **PROGRAM_ALIASES}
#: Keys of a program's settings that have a key of their own here, or would switch off what swarm needs.
_NOT_IN_SETTINGS = {
    "permissions": "use `permissions:` of the role",
    "hooks": "use `hooks:` of the role",
    "model": "use `model:` of the role",
    "env": "use `env:` of the role",
    "disableAllHooks": "swarm's own hooks must run",
    "allowManagedHooksOnly": "swarm's own hooks must run",
    "defaultMode": "use `permission_mode:` of the role",
}


# --- checks of single texts -----------------------------------------------------------------------


def _word(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][^\s]*", value) is None:
        raise ValueError("must be one word that begins with a letter or digit")
    return value


def _folder(value: str) -> str:
    if value == ".":
        return value
    return "/".join(part for part in commandline.inside(value).split("/") if part not in ("", ".")) or "."


def _root_dir(value: str) -> str:
    if "\0" in value or not value.strip():
        raise ValueError("must be a path: absolute, from ~/, or relative to the swarm directory")
    return os.path.normpath(value)


def _config_dir(value: str) -> str:
    if value and not value.startswith(("/", "~/")):
        raise ValueError("must be an absolute path, or one that begins with ~/")
    return value


def _pattern(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_*?]+", value) is None:
        raise ValueError("must be the name of a variable, or a pattern with * and ?")
    return value


def _rule(value: str) -> str:
    decide.parse_rule(value)
    return value


# --- blocks ---------------------------------------------------------------------------------------


def _reviewer(**found: Any) -> Reviewer:
    """Instructions alone switch it on; without any it cannot be on."""
    made = Reviewer(**{"enabled": "instructions" in found, **found})
    if made.enabled and not made.instructions:
        refuse("are missing", "write rules for allowing, denying and asking", key="instructions")
    return made


_MODEL = text(lambda value: value and _word(value), "word", longest=100, pattern=r"^([A-Za-z0-9]\S*)?$")
_RULES = listing(text(_rule, "rule", longest=decide.LONGEST_RULE), "list of rules")
_PERMISSIONS = mapping(
    {
        "allow": Field(_RULES, "Tool calls that need no question."),
        "deny": Field(_RULES, "Tool calls that are refused; they win over `allow`."),
        "unclear": Field(
            then(choice(*Unclear), Unclear), "The action if swarm cannot tell whether a deny rule matches."
        ),
        "agent": Field(
            mapping(
                {
                    "enabled": Field(switch(), "Ask the model; instructions alone switch it on."),
                    "instructions": Field(
                        text(filled, longest=_LONG, lines=True, least=1), "The instructions of the model."
                    ),
                    "model": Field(_MODEL, "Which model answers."),
                    "timeout": Field(seconds(1, 55), "After this time the question goes to a person."),
                },
                _reviewer,
            ),
            "A model that decides calls that no rule covers.",
            ("reviewer", "review_agent"),
            to="reviewer",
        ),
    },
    Permissions,
)


def _heartbeat(**found: Any) -> Heartbeat:
    missing = [Trouble("is missing", one) for one in ("idle_timeout", "message") if one not in found]
    if missing:
        raise Misfit(*missing)
    return Heartbeat(**found)


_HEARTBEAT = mapping(
    {
        "idle_timeout": Field(seconds(1, _WEEK), "How long the agent must have been idle.", override=True),
        "message": Field(text(filled, longest=10_000, lines=True, least=1), "The text of the message.", override=True),
        "condition": Field(text(longest=10_000, lines=True), "A shell command that must succeed first.", override=True),
    },
    _heartbeat,
)
_COMMANDS = commands()
_FILES = listing(text(commandline.inside, "path", least=1), "list of paths and patterns")
_POLICY = Field(
    then(choice(*Policy), Policy), "After a failed command: undo everything, or only warn.", ("on_failure", "on_error")
)
_SETUP = mapping(
    {
        "copy": Field(_FILES, "Untracked files of the main checkout to copy into the worktree."),
        "link": Field(_FILES, "Untracked files of the main checkout to link into the worktree.", ("symlink",)),
        "run": Field(_COMMANDS, "Commands to run in the worktree. There is no shell.", ("commands",)),
        "ports": Field(
            listing(text(commandline.port, "variable", longest=100), "list of variables", most=20),
            "Environment variables that hold a free port each.",
        ),
        "timeout": Field(seconds(1, _DAY), "Longest time for each command."),
        "policy": _POLICY,
    },
    Setup,
)
_TEARDOWN = mapping(
    {
        "run": Field(_COMMANDS, "Commands to run before swarm removes the worktree.", ("commands",)),
        "timeout": Field(seconds(1, _DAY), "Longest time for each command."),
        "policy": _POLICY,
    },
    Teardown,
)
_WORKTREE = mapping(
    {
        "enabled": Field(switch(), "Work in a worktree of its own.", override=True),
        "branch_from": Field(
            text(_word, "branch or commit", longest=250, pattern=r"^[A-Za-z0-9]\S*$"),
            "Where its branch starts.",
            override=True,
        ),
        "use_detached_head": Field(switch(), "Have no branch.", override=True),
        "subdir": Field(text(_folder, "folder", least=1), "The folder of the worktree in which the agent works."),
    },
    WorktreeOptions,
)


_LIMITS = mapping(
    {
        "tokens": Field(number(1, 10**12), "Tokens that an agent may read and write."),
        "cost": Field(amount(0.01, 10**6), "US dollars that an agent may cost."),
        "minutes": Field(amount(0.1, 10**6), "Minutes that an agent may run."),
        "agents": Field(number(1, 256), "Agents of this role in one session."),
    },
    Limits,
)
_NETWORK = mapping(
    {
        "preset": Field(choice(*hosts.PRESETS), "The setting `sandbox.network`, for this role."),
        "hosts": Field(listing(text(hosts.host, "host"), "list of hosts"), "Hosts beside those of `sandbox.hosts`."),
    },
    Network,
)


# --- environment, hooks and settings ----------------------------------------------------------------


def _values(raw: Any) -> dict[str, str]:
    if not isinstance(raw, Mapping):
        refuse("must be a mapping of names and values")
    names = gather(((name,), "", partial(_variable, name)) for name in raw)
    return dict(zip(names, gather(((name,), name, partial(_VALUE.read, raw[name])) for name in raw), strict=True))


def _variable(name: str) -> str:
    try:
        return commandline.variable(name)
    except ValueError as error:
        refuse(str(error), value=repr(name), at_key=True)


_VALUE = text(longest=32_000, lines=True)
_PATTERNS = listing(text(_pattern, "pattern", longest=100, pattern=r"^[A-Za-z0-9_*?]+$"), "list of variables")
_ENV = mapping(
    {
        "pass": Field(
            _PATTERNS,
            "Pass on only these of your variables, and those that swarm and a terminal need.",
            ("keep", "pass_through"),
            to="keep",
        ),
        "drop": Field(_PATTERNS, "Variables of yours that do not go along.", ("remove", "unset")),
        "set": Field(
            Form(
                "mapping of variables and values",
                _values,
                {"type": ["object", "null"], "additionalProperties": _VALUE.schema},
            ),
            "Further variables.",
            ("add",),
        ),
    },
    lambda **found: Env(narrow="keep" in found, **found),
)


def _settings(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        refuse("must be a mapping")
    return dict(gather(((name,), name, partial(_setting, name, raw[name])) for name in raw))


def _setting(name: str, raw: Any) -> tuple[str, Any]:
    if name in _NOT_IN_SETTINGS:
        refuse("cannot stand here", _NOT_IN_SETTINGS[name], at_key=True)
    return name, _as_json(raw)


def _as_json(raw: Any) -> Any:
    """Return values that are another program's: with numbers that keep their fractions, which are text elsewhere."""
    if isinstance(raw, Mapping):
        return dict(gather(((name,), name, partial(_named, name, raw[name])) for name in raw))
    if isinstance(raw, list):
        return gather(((place,), "", partial(_as_json, item)) for place, item in enumerate(raw))
    fraction = fraction_from(raw) if isinstance(raw, Bare) else None
    return raw if fraction is None else fraction


def _named(name: str, raw: Any) -> tuple[str, Any]:
    return name, _as_json(raw)


def _command(raw: Any) -> tuple[str, ...]:
    import shlex

    if isinstance(raw, (list, tuple)):
        found = _WORDS.read(raw)
    else:
        try:
            found = tuple(shlex.split(_LINE.read(raw)))
        except Misfit:
            raise
        except ValueError as error:
            refuse(f"cannot be read: {error}")
    if not found or not found[0]:
        refuse("must name a program")
    return found


_LINE = text(filled, longest=10_000, least=1)
_WORDS = listing(text(longest=10_000), distinct=False)
_COMMAND = Form("command", _command, {"anyOf": [_LINE.schema, _WORDS.schema["anyOf"][1]]})


# --- the file -------------------------------------------------------------------------------------


def _role(**found: Any) -> dict[str, Any]:
    if "command" in found and "agent_type" in found:
        refuse("stands beside agent_type", "keep one of the two", key="command", at_key=True)
    return found


_TEXT = text(longest=_LONG, lines=True)
ROLE = mapping(
    {
        "name": Field(text(), "The role's name: that of the file.", ("role_name",)),
        "description": Field(text(longest=500, lines=True), "The purpose, in one line."),
        "instructions": Field(_TEXT, "The agent's instructions.", ("append_system_prompt",)),
        "instructions_file": Field(
            text(commandline.inside, "path", least=1), "A file in the same folder that holds the instructions."
        ),
        "system_prompt": Field(_TEXT, "Replaces the program's own prompt."),
        "agent_type": Field(
            then(choice(*_PROGRAMS), _PROGRAMS.__getitem__),
            "The agent program.",
            ("agent", "program", "agent_harness", "harness"),
            override=True,
        ),
        "command": Field(
            _COMMAND, "Any other program instead, without a shell.", ("agent_command", "agent_harness_command")
        ),
        "model": Field(_MODEL, "The model that the program is told to use.", ("agent_model",), override=True),
        "permission_mode": Field(
            then(
                choice(
                    *PermissionMode,
                    hints={
                        "delegate": "programs no longer know it; use acceptEdits, or let `permissions.agent` decide"
                    },
                ),
                PermissionMode,
            ),
            "The program's answer to a tool call that no rule covers.",
            ("claude_permission_mode",),
        ),
        "root_dir": Field(
            text(_root_dir, "path", longest=4096, least=1),
            "The repository that the role is for: absolute, from `~/`, or below the swarm directory; `.` is any.",
            ("working_dir", "cwd"),
            override=True,
        ),
        "claude_config_dir": Field(
            text(_config_dir, "path"), "The program's configuration folder.", ("config_dir",), override=True
        ),
        "permissions": Field(_PERMISSIONS, "Which tool calls need no question, and which are refused."),
        "hooks": Field(HOOKS, "Commands that the program runs at its events."),
        "settings": Field(
            Form("mapping", _settings, {"type": ["object", "null"]}), "Further keys of the program's settings."
        ),
        "env": Field(_ENV, "Changes to the environment."),
        "heartbeat": Field(_HEARTBEAT, "A message for the agent when it has been idle for long."),
        "setup": Field(_SETUP, "Preparation of the worktree before the first turn."),
        "teardown": Field(_TEARDOWN, "Commands before swarm removes the worktree."),
        "limits": Field(_LIMITS, "How much an agent may use up."),
        "worktree": Field(_WORKTREE, "Its worktree."),
        "telemetry": Field(switch(), "Send measurements, whether or not `telemetry.enabled` is set."),
        "sandbox": Field(
            switch(),
            "Run in a box; `false` counts in your own swarm directory alone.",
            ("box",),
        ),
        "network": Field(
            _NETWORK, "What it can reach in a box beside its model; it counts in your own swarm directory alone."
        ),
        "print": Field(
            switch(), "Do the task without a dialog, and end.", ("print_mode", "headless", "non_interactive")
        ),
        "may": Field(
            listing(then(choice(*Right), Right)),
            "Rights over the agents of others; they count in your own swarm directory alone.",
            ("rights",),
        ),
    },
    _role,
    "role",
)
_OPTIONS = frozenset(RoleOptions.__dataclass_fields__)


def options(values: dict[str, Any]) -> RoleOptions:
    """Return those of the values that are options."""
    return RoleOptions(**{name: value for name, value in values.items() if name in _OPTIONS})
